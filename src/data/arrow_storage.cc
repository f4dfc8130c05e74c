/*
 * Paths and URIs as files of Arrow, and the remote half of storage.h. A store is made from its URI
 * alone: region, endpoint and credentials come from the URI's query or from where the store's own
 * tools look for them.
 */
#include "data/arrow_storage.h"
#include "data/arrow_inside.hh"

#include <algorithm>
#include <arrow/config.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/file.h>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>
#include <vector>

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

// ---- a URI as a store and a path in it
// -----------------------------------------------------------

namespace
{
struct place {
    std::shared_ptr<FileSystem> store;
    std::string path;
};
} // namespace

// Newer Arrows keep S3 in a library of its own beside their first.
static Status load_s3()
{
    static const Status loaded = [] {
        Dl_info arrow_library;
        if (dladdr(reinterpret_cast<const void *>(&arrow::GetBuildInfo), &arrow_library) == 0)
            return Status::OK();
        std::string path = arrow_library.dli_fname;
        size_t at = path.rfind("libarrow.so");
        if (at == std::string::npos)
            return Status::OK(); // linked otherwise, S3 with it or not
        path.replace(at, strlen("libarrow"), "libarrow_s3");
        if (access(path.c_str(), R_OK) != 0)
            return Status::OK();
        ARROW_RETURN_NOT_OK(arrow::fs::LoadFileSystemFactories(path.c_str()));
        return Status::OK();
    }();
    return loaded;
}

// Google's client tries for a quarter of an hour where nothing else is said.
static std::string patient(const std::string &uri)
{
    bool is_google = uri.compare(0, 5, "gs://") == 0 || uri.compare(0, 6, "gcs://") == 0;
    if (!is_google || uri.find("retry_limit_seconds=") != std::string::npos)
        return uri;
    return uri + (uri.find('?') == std::string::npos ? "?" : "&") + "retry_limit_seconds=20";
}

static arrow::Result<place> place_of(const std::string &uri)
{
    static const char *const known[] = {"s3://", "gs://", "gcs://", "hdfs://", "file://"};
    bool is_known = false;
    for (const char *scheme : known)
        is_known = is_known || uri.compare(0, strlen(scheme), scheme) == 0;
    if (!is_known)
        return Status::Invalid("stores begin with s3://, gs://, hdfs:// or file://");
    bool is_s3 = uri.compare(0, 5, "s3://") == 0;
    if (is_s3)
        ARROW_RETURN_NOT_OK(load_s3());
    place found;
    ARROW_ASSIGN_OR_RAISE(found.store, arrow::fs::FileSystemFromUri(patient(uri), &found.path));
    if (is_s3) {
        // Registered only now: what S3 registered when it began must come after it.
        static const int registered = std::atexit([] { arrow::fs::EnsureFinalized(); });
        (void)registered;
    }
    return found;
}

arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>>
tandem::open_input(const std::string &path)
{
    if (!tdmi_arrow_is_uri(path.c_str()))
        return arrow::io::ReadableFile::Open(path, tandem::pool());
    ARROW_ASSIGN_OR_RAISE(place found, place_of(path));
    return found.store->OpenInputFile(found.path);
}

static tdm_status refused(tdm_error *err, const Status &status, const char *attempt,
                          const char *uri)
{
    tdm_status code = status.IsIOError() ? TDM_E_SYSTEM : tandem::code_of(status);
    return TDM_FAIL(err, code, "%s '%s': %s", attempt, uri, status.message().c_str());
}

// ---- looking
// --------------------------------------------------------------------------------------

tdm_status tdmi_arrow_uri_stat(const char *uri, enum tdmi_arrow_uri_kind *kind, int64_t *size_bytes,
                               tdm_error *err)
{
    *kind = TDMI_ARROW_URI_MISSING;
    *size_bytes = -1;
    Status status = guarded([&] {
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        ARROW_ASSIGN_OR_RAISE(FileInfo info, found.store->GetFileInfo(found.path));
        if (info.type() == FileType::Directory)
            *kind = TDMI_ARROW_URI_FOLDER;
        if (info.type() == FileType::File) {
            *kind = TDMI_ARROW_URI_FILE;
            *size_bytes = info.size();
        }
        return Status::OK();
    });
    return status.ok() ? TDM_OK : refused(err, status, "cannot look at", uri);
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
    Status status = guarded([&] { return list_folder(uri, &entries); });
    if (!status.ok())
        return refused(err, status, "cannot list", uri);
    for (const FileInfo &entry : entries) {
        const std::string name = entry.base_name();
        bool is_file = entry.type() == FileType::File;
        if (!name.empty())
            TDM_TRY(visit(self, name.c_str(), is_file ? TDMI_ARROW_URI_FILE : TDMI_ARROW_URI_FOLDER,
                          is_file ? entry.size() : -1, err),
                    err, "cannot list '%s'", uri);
    }
    return TDM_OK;
}

// ---- reading
// --------------------------------------------------------------------------------------

tdm_status tdmi_arrow_remote_open(const char *uri, tdmi_arrow_remote **file, tdm_error *err)
{
    *file = nullptr;
    Status status = guarded([&] {
        auto opened = std::make_unique<tdmi_arrow_remote>();
        opened->uri = uri;
        ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
        ARROW_ASSIGN_OR_RAISE(opened->input, found.store->OpenInputFile(found.path));
        ARROW_ASSIGN_OR_RAISE(opened->size_bytes, opened->input->GetSize());
        *file = opened.release();
        return Status::OK();
    });
    return status.ok() ? TDM_OK : refused(err, status, "cannot open", uri);
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
    int64_t got = 0;
    Status status = guarded([&] {
        return file->input->ReadAt(offset_bytes, static_cast<int64_t>(n_bytes), bytes).Value(&got);
    });
    *done = status.ok() ? static_cast<size_t>(got) : 0;
    return status.ok() ? TDM_OK : refused(err, status, "cannot read", file->uri.c_str());
}
