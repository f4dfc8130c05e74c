/*
 * Paths and URIs as files of Arrow, and the remote half of storage.h. A store is made from its URI
 * alone: region, endpoint and credentials come from the URI's query or from where the store's own
 * tools look for them. It is made once for each bucket and then shared, since it keeps the
 * connections open that every request would else begin anew; so a query need only stand in the
 * first URI of its bucket.
 */
#include "io/arrow/storage.h"
#include "io/arrow/inside.hh"

#include <algorithm>
#include <arrow/config.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/file.h>
#include <arrow/util/io_util.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <unistd.h>
#include <vector>

#include "tandem/event.h"

using arrow::Status;
using arrow::fs::FileInfo;
using arrow::fs::FileSystem;
using arrow::fs::FileType;
using tandem::guarded;

struct tdmi_arrow_remote {
    std::string uri;
    std::shared_ptr<arrow::io::RandomAccessFile> input;
    int64_t size_bytes;
};

// ---- a URI as a store and a path in it ---------------------------------------------------------

namespace
{
struct place {
    std::shared_ptr<FileSystem> store;
    std::string path;
    bool has_bucket; // a file appears there once it is whole
};
} // namespace

// Newer Arrows keep S3 in a library of its own beside their first.
static Status load_s3()
{
    Dl_info arrow_library;
    if (dladdr(reinterpret_cast<const void *>(&arrow::GetBuildInfo), &arrow_library) == 0)
        return Status::OK();
    std::string path = arrow_library.dli_fname;
    size_t at = path.rfind("libarrow.so");
    if (at == std::string::npos)
        return Status::OK(); // linked otherwise, S3 with it or not
    path.replace(at, strlen("libarrow"), "libarrow_s3");
    return access(path.c_str(), R_OK) != 0 ? Status::OK()
                                           : arrow::fs::LoadFileSystemFactories(path.c_str());
}

// Google's client tries for a quarter of an hour where nothing else is said.
static std::string patient(const std::string &uri)
{
    bool is_google = uri.compare(0, 5, "gs://") == 0 || uri.compare(0, 6, "gcs://") == 0;
    if (!is_google || uri.find("retry_limit_seconds=") != std::string::npos)
        return uri;
    return uri + (uri.find('?') == std::string::npos ? "?" : "&") + "retry_limit_seconds=20";
}

namespace
{
// Retries of S3: after failures that may pass (no connection, no answer for 3 s, "slow down"),
// 12 times, with pauses that grow from 0.2 to 2 s. A store that refuses is given up after 20 s, one
// that is silent after a minute. A stop request waits for one attempt and one pause.
class s3_patience final : public arrow::fs::S3RetryStrategy
{
  public:
    bool ShouldRetry(const AWSErrorDetail &error, int64_t attempted) override
    {
        return error.should_retry && attempted < 12 && !tdm_stop_is_requested();
    }
    int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail &, int64_t attempted) override
    {
        return std::min<int64_t>(200LL << std::min<int64_t>(attempted, 4), 2000);
    }
};

struct known_store {
    std::shared_ptr<FileSystem> files;
    std::string query;
};

// Arrow's S3 is one for the process: begun once, ended once. So are the stores.
struct stores {
    std::mutex lock;
    std::map<std::string, known_store> by_root; // "s3://bucket"
};
} // namespace

static stores &all_stores()
{
    static stores *all = new stores; // not taken down before the last thread that might ask
    return *all;
}

static arrow::Result<std::shared_ptr<FileSystem>> make_store(const std::string &uri)
{
    if (uri.compare(0, 5, "s3://") != 0)
        return arrow::fs::FileSystemFromUri(patient(uri));
    static const Status loaded = load_s3();
    ARROW_RETURN_NOT_OK(loaded);
    std::shared_ptr<arrow::fs::S3RetryStrategy> retry = std::make_shared<s3_patience>();
    auto store = arrow::fs::FileSystemFromUriAndOptions(uri, {{"retry_strategy", std::any(retry)}});
    // Whatever S3 registered while it began, or made its first client, must end after our handler:
    // so one is registered each time, also when no store came of it. The first to run does it all.
    if (std::atexit([] {
            all_stores().by_root.clear();
            (void)arrow::fs::EnsureFinalized();
        }) != 0)
        return Status::OutOfMemory("no memory to end S3 with the program");
    return store;
}

namespace
{
// "s3://key:secret@bucket/a b/c.jpg?region=x", taken apart. Paths are written as they are, without
// percent-encoding, since they come from listings as often as from users.
struct parts {
    std::string scheme, authority, path, query;
    explicit parts(const std::string &uri);
};
} // namespace

// A question mark begins options only where they look like some: names of files have them too.
static size_t query_at(const std::string &uri)
{
    size_t mark = uri.find('?');
    size_t name = mark == std::string::npos
                      ? mark
                      : uri.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", mark + 1);
    bool has_value = name != std::string::npos && name > mark + 1 && uri[name] == '=';
    return has_value ? mark : uri.size();
}

parts::parts(const std::string &uri)
{
    size_t end = query_at(uri), from = uri.find("://") + 3;
    size_t slash = std::min(uri.find('/', from), end);
    scheme = uri.substr(0, from - 3);
    authority = uri.substr(from, slash - from);
    path = uri.substr(slash, end - slash);
    query = uri.substr(end);
    while (!path.empty() && path.back() == '/')
        path.pop_back();
}

static arrow::Result<std::shared_ptr<FileSystem>> store_of(const parts &request)
{
    const std::string root = request.scheme + "://" + request.authority;
    stores &all = all_stores();
    std::lock_guard<std::mutex> held(all.lock);
    auto known = all.by_root.find(root);
    if (known == all.by_root.end()) {
        ARROW_ASSIGN_OR_RAISE(auto files, make_store(root + "/" + request.query));
        known = all.by_root.insert({root, {files, request.query}}).first;
    }
    const std::string &query = known->second.query;
    if (!request.query.empty() && request.query != query)
        return Status::Invalid("this bucket was asked before with ",
                               query.empty() ? "no options" : query.c_str(),
                               "; one process takes one set of options for a bucket");
    return known->second.files;
}

static arrow::Result<place> place_of(const std::string &uri)
{
    const parts request(uri);
    bool has_bucket = request.scheme == "s3" || request.scheme == "gs" || request.scheme == "gcs";
    if (!has_bucket && request.scheme != "hdfs" && request.scheme != "file")
        return Status::Invalid("stores begin with s3://, gs://, hdfs:// or file://");
    place found;
    found.has_bucket = has_bucket;
    ARROW_ASSIGN_OR_RAISE(found.store, store_of(request));
    found.path = request.path.empty() ? "/" : request.path;
    if (has_bucket)
        found.path = request.authority.substr(request.authority.rfind('@') + 1) + request.path;
    return found;
}

bool tandem::is_uri(const std::string &path)
{
    size_t n = strspn(path.c_str(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789+.-");
    return n > 0 && path.compare(n, 3, "://") == 0;
}

arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>>
tandem::open_input(const std::string &path)
{
    if (!is_uri(path))
        return arrow::io::ReadableFile::Open(path, tandem::pool());
    ARROW_ASSIGN_OR_RAISE(place found, place_of(path));
    return found.store->OpenInputFile(found.path);
}

static bool says(const Status &status, const char *words)
{
    return status.message().find(words) != std::string::npos;
}

// That one object is not there, or closed to us, is bad input; that its store fails is not.
tdm_status tandem::code_of(const Status &status)
{
    if (status.IsOutOfMemory())
        return TDM_E_MEMORY;
    bool is_of_store = says(status, "AWS Error ") || says(status, "google::cloud::Status");
    if (!is_of_store || says(status, "ACCESS_DENIED") || says(status, "PERMISSION_DENIED"))
        return TDM_E_INPUT;
    return tdm_stop_is_requested() ? TDM_E_STOPPED : TDM_E_SYSTEM;
}

// Runs call as tandem::attempt() does, for the place of a store.
template <class Call>
static tdm_status ask_store(tdm_error *err, const char *attempt, const std::string &uri,
                            Call &&call) noexcept
{
    const Status status = guarded(call);
    if (status.ok())
        return TDM_OK;
    if (says(status, "Unable to load lib"))
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "%s '%s': HDFS needs Hadoop's libhdfs and a Java machine, found by "
                        "HADOOP_HOME and JAVA_HOME: %.120s…",
                        attempt, uri.c_str(), status.message().c_str());
    bool is_missing = arrow::internal::ErrnoFromStatus(status) == ENOENT;
    tdm_status code = tandem::code_of(status);
    if (code == TDM_E_INPUT && status.IsIOError() && !is_missing && !says(status, "DENIED"))
        code = TDM_E_SYSTEM;
    return TDM_FAIL(err, code, "%s '%s': %s", attempt, uri.c_str(), status.message().c_str());
}

// ---- looking -----------------------------------------------------------------------------------

tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_file_kind *kind, int64_t *size_bytes,
                               tdm_error *err)
{
    *kind = TDMI_FILE_MISSING;
    *size_bytes = -1;
    return ask_store(err, "cannot look at", uri, [&] {
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        ARROW_ASSIGN_OR_RAISE(FileInfo info, found.store->GetFileInfo(found.path));
        if (info.type() == FileType::Directory)
            *kind = TDMI_FILE_FOLDER;
        if (info.type() == FileType::File) {
            *kind = TDMI_FILE_REGULAR;
            *size_bytes = info.size();
        }
        return Status::OK();
    });
}

static Status list_folder(const char *uri, std::vector<FileInfo> *entries)
{
    ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
    arrow::fs::FileSelector within;
    within.base_dir = found.path;
    ARROW_ASSIGN_OR_RAISE(*entries, found.store->GetFileInfo(within));
    std::sort(entries->begin(), entries->end(),
              [](const FileInfo &a, const FileInfo &b) { return a.base_name() < b.base_name(); });
    return Status::OK();
}

tdm_status tdmi_arrow_uri_list(const char *uri, tdmi_arrow_visit visit, void *self, tdm_error *err)
{
    std::vector<FileInfo> entries;
    tdm_status status =
        ask_store(err, "cannot list", uri, [&] { return list_folder(uri, &entries); });
    if (status != TDM_OK)
        return status;
    for (const FileInfo &entry : entries) {
        const std::string name = entry.base_name();
        bool is_file = entry.type() == FileType::File;
        if (!name.empty())
            TDM_TRY(visit(self, name.c_str(), is_file ? TDMI_FILE_REGULAR : TDMI_FILE_FOLDER,
                          is_file ? entry.size() : -1, err),
                    err, "cannot list '%s'", uri);
    }
    return TDM_OK;
}

// ---- reading -----------------------------------------------------------------------------------

tdm_status tdmi_arrow_remote_open(const char *uri, int64_t listed_bytes, tdmi_arrow_remote **file,
                                  tdm_error *err)
{
    *file = nullptr;
    return ask_store(err, "cannot open", uri, [&] {
        auto opened = std::make_unique<tdmi_arrow_remote>();
        opened->uri = uri;
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        FileInfo info(found.path, listed_bytes < 0 ? FileType::Unknown : FileType::File);
        if (listed_bytes >= 0)
            info.set_size(listed_bytes);
        ARROW_ASSIGN_OR_RAISE(opened->input, found.store->OpenInputFile(info));
        ARROW_ASSIGN_OR_RAISE(opened->size_bytes, opened->input->GetSize());
        *file = opened.release();
        return Status::OK();
    });
}

void tdmi_arrow_remote_close(tdmi_arrow_remote *file)
{
    (void)guarded([&] {
        delete file;
        return Status::OK();
    });
}

int64_t tdmi_arrow_remote_size(const tdmi_arrow_remote *file)
{
    return file->size_bytes;
}

tdm_status tdmi_arrow_remote_read(const tdmi_arrow_remote *file, int64_t offset_bytes, void *bytes,
                                  size_t n_bytes, size_t *done, tdm_error *err)
{
    *done = 0;
    return ask_store(err, "cannot read", file->uri, [&] {
        ARROW_ASSIGN_OR_RAISE(
            int64_t got, file->input->ReadAt(offset_bytes, static_cast<int64_t>(n_bytes), bytes));
        *done = static_cast<size_t>(got);
        return Status::OK();
    });
}

// ---- writing -----------------------------------------------------------------------------------

// The error of read is kept in *problem, for it says more than Arrow's.
static Status write_file(arrow::io::OutputStream *file, void *self, tdmi_arrow_read read,
                         int64_t n_bytes, tdm_error *problem)
{
    constexpr int64_t piece_bytes = 4 << 20;
    std::vector<char> piece(static_cast<size_t>(std::min(piece_bytes, n_bytes)));
    for (int64_t at = 0; at < n_bytes;) {
        const int64_t n = std::min(piece_bytes, n_bytes - at);
        if (read(self, at, piece.data(), static_cast<size_t>(n), problem) != TDM_OK)
            return Status::Cancelled("it cannot be read");
        ARROW_RETURN_NOT_OK(file->Write(piece.data(), n));
        at += n;
    }
    return file->Close();
}

tdm_status tdmi_arrow_remote_put(const char *uri, void *self, tdmi_arrow_read read, int64_t n_bytes,
                                 tdm_error *err)
{
    tdm_error problem = {};
    const tdm_status status = ask_store(err, "cannot write", uri, [&] {
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        if (!found.has_bucket)
            return Status::Invalid("files are written to s3:// and gs:// only, where they appear "
                                   "once they are whole");
        ARROW_ASSIGN_OR_RAISE(auto file, found.store->OpenOutputStream(found.path));
        const Status written =
            guarded([&] { return write_file(file.get(), self, read, n_bytes, &problem); });
        if (!written.ok())
            (void)file->Abort(); // else its destructor would complete it
        return written;
    });
    if (problem.code == TDM_OK)
        return status;
    if (err != nullptr)
        *err = problem;
    return TDM_WRAP(err, problem.code, "cannot write '%s'", uri);
}

tdm_status tdmi_arrow_remote_remove(const char *uri, tdm_error *err)
{
    return ask_store(err, "cannot remove", uri, [&] {
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        const Status removed = found.store->DeleteFile(found.path);
        const bool is_missing = arrow::internal::ErrnoFromStatus(removed) == ENOENT;
        return is_missing ? Status::OK() : removed;
    });
}
