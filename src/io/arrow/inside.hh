// Shared by the C++ files: how what Arrow returns or throws becomes a sentence, and how a path or
// URI becomes a file.
#ifndef TANDEM_IO_ARROW_INSIDE_HH
#define TANDEM_IO_ARROW_INSIDE_HH

#include "tandem/error.h"

extern "C" {
#include "base/memory.h"
}
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <cstring>
#include <memory>
#include <new>
#include <parquet/exception.h>
#include <string>

namespace tandem
{

// Arrow's other allocators keep freed memory for later; a budget must see it go.
inline arrow::MemoryPool *pool()
{
    return arrow::system_memory_pool();
}

// Arrow exports schemas and batches by code that ends the program where it gets no memory, so there
// must be some: many times what it allocates for one, and returned at once.
inline arrow::Status need_room_to_export()
{
    void *room = tdmi_alloc(1, 64 * 1024);
    tdmi_free(room);
    return room == nullptr ? arrow::Status::OutOfMemory("no memory") : arrow::Status::OK();
}

// Parquet's reader of footers repeats what it caught as text.
inline arrow::Status status_of(const std::exception &thrown)
{
    return strstr(thrown.what(), "std::bad_alloc") != nullptr
               ? arrow::Status::OutOfMemory("no memory")
               : arrow::Status::Invalid(thrown.what());
}

// Runs call, which returns an arrow::Status. Nothing leaves it by throwing.
template <class Call>
arrow::Status guarded(Call &&call) noexcept
{
    try {
        return call();
    } catch (const parquet::ParquetStatusException &thrown) {
        return thrown.status();
    } catch (const std::bad_alloc &) {
        return arrow::Status::OutOfMemory("no memory");
    } catch (const std::exception &thrown) {
        return status_of(thrown);
    } catch (...) {
        return arrow::Status::UnknownError("an unknown exception");
    }
}

// In arrow/storage.cc: damage is TDM_E_INPUT, a store that does not answer TDM_E_SYSTEM.
tdm_status code_of(const arrow::Status &status);

// Runs call as guarded() does and returns its status as ours; attempt is a sentence's beginning
// ("cannot read") about object.
template <class Call>
tdm_status attempt(tdm_error *err, const char *attempt, const std::string &object,
                   Call &&call) noexcept
{
    const arrow::Status status = guarded(call);
    return status.ok() ? TDM_OK
                       : TDM_FAIL(err, code_of(status), "%s '%s': %s", attempt, object.c_str(),
                                  status.message().c_str());
}

// In arrow/storage.cc. Does the path begin with a scheme ("s3://…")?
bool is_uri(const std::string &path);
// A path, or a URI of a store.
arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> open_input(const std::string &path);

} // namespace tandem

#endif
