/*
 * Paths and URIs as files of Arrow, and the remote half of storage.h. A store is made from its URI
 * alone: region, endpoint and credentials come from the URI's query or from where the store's own
 * tools look for them.
 */
#include "data/arrow_storage.h"
#include "data/arrow_inside.hh"

#include <algorithm>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/file.h>
#include <cstring>

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

static arrow::Result<place> place_of(const std::string &uri)
{
    static const char *const known[] = {"s3://", "gs://", "gcs://", "hdfs://", "file://"};
    bool is_known = false;
    for (const char *scheme : known)
        is_known = is_known || uri.compare(0, strlen(scheme), scheme) == 0;
    if (!is_known)
        return Status::Invalid("stores begin with s3://, gs://, hdfs:// or file://");
    place found;
    ARROW_ASSIGN_OR_RAISE(found.store, arrow::fs::FileSystemFromUri(uri, &found.path));
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

static Status list_files(const char *uri, std::vector<FileInfo> *files, std::string *base)
{
    ARROW_ASSIGN_OR_RAISE(place found, place_of(uri));
    arrow::fs::FileSelector below;
    below.base_dir = found.path;
    below.recursive = true;
    ARROW_ASSIGN_OR_RAISE(*files, found.store->GetFileInfo(below));
    *base = found.path;
    while (!base->empty() && base->back() == '/')
        base->pop_back();
    std::sort(files->begin(), files->end(),
              [](const FileInfo &a, const FileInfo &b) { return a.path() < b.path(); });
    return Status::OK();
}

tdm_status tdmi_arrow_uri_list(const char *uri, tdmi_arrow_visit visit, void *self, tdm_error *err)
{
    std::vector<FileInfo> files;
    std::string base;
    Status status = guarded([&] { return list_files(uri, &files, &base); });
    if (!status.ok())
        return refused(err, status, "cannot list", uri);
    for (const FileInfo &file : files) {
        if (file.type() != FileType::File)
            continue;
        const char *path = file.path().c_str();
        if (file.path().compare(0, base.size(), base) == 0)
            path += base.size();
        while (*path == '/')
            path++;
        TDM_TRY(visit(self, path, file.size(), err), err, "cannot use '%s' of '%s'", path, uri);
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
                                  size_t n_bytes, tdm_error *err)
{
    int64_t got = 0;
    Status status = guarded([&] {
        return file->input->ReadAt(offset_bytes, static_cast<int64_t>(n_bytes), bytes).Value(&got);
    });
    if (!status.ok())
        return refused(err, status, "cannot read", file->uri.c_str());
    if (got != static_cast<int64_t>(n_bytes))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' ends at byte %lld, before the %zu bytes that stand at byte %lld",
                        file->uri.c_str(), static_cast<long long>(offset_bytes + got), n_bytes,
                        static_cast<long long>(offset_bytes));
    return TDM_OK;
}
