/*
 * Parquet through Arrow's reader, handed out as plain C. A file keeps its footer and nothing else:
 * every call that reads opens it anew, so that a set of thousands of files needs no descriptors.
 * No exception and no C++ type leaves this file.
 */
#include "io/arrow/bridge.h"
#include "io/arrow/inside.hh"
#include "io/arrow/storage.h"

#include <arrow/c/bridge.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <vector>

using arrow::Status;
using tandem::attempt;
using tandem::guarded;

namespace
{
// Rows decoded together: enough to be quick with small images, little with large ones.
constexpr int64_t rows_at_once = 1024;
constexpr int64_t read_ahead_bytes = 1 << 20;
} // namespace

struct tdmi_arrow_file {
    std::string path;
    std::shared_ptr<arrow::io::RandomAccessFile> remote; // of a store, kept; NULL for local files
    std::shared_ptr<parquet::FileMetaData> metadata;
    int64_t size_bytes;
    int64_t n_rows; // of all row groups: some writers leave the file's own number at 0
};

// ---- opening -----------------------------------------------------------------------------------

static parquet::ReaderProperties reader_properties()
{
    parquet::ReaderProperties properties(tandem::pool());
    properties.set_page_checksum_verification(true);
    properties
        .enable_buffered_stream(); // else a whole column of a row group is read before decoding
    properties.set_buffer_size(read_ahead_bytes);
    return properties;
}

static std::unique_ptr<parquet::ParquetFileReader> reader_of(const tdmi_arrow_file *file)
{
    std::shared_ptr<arrow::io::RandomAccessFile> input = file->remote;
    if (input == nullptr) {
        PARQUET_ASSIGN_OR_THROW(input, tandem::open_input(file->path));
    }
    return parquet::ParquetFileReader::Open(input, reader_properties(), file->metadata);
}

static arrow::Result<int64_t> count_rows(const parquet::FileMetaData &metadata)
{
    int64_t n_rows = 0;
    for (int g = 0; g < metadata.num_row_groups(); g++) {
        int64_t n = metadata.RowGroup(g)->num_rows();
        if (n < 0 || n > INT64_MAX - n_rows)
            return Status::Invalid("row group ", g, " is said to have ", n, " rows");
        n_rows += n;
    }
    return n_rows;
}

tdm_status tdmi_arrow_file_open(const char *path, tdmi_arrow_file **file, tdm_error *err)
{
    *file = nullptr;
    return attempt(err, "cannot open as Parquet", path, [&] {
        auto opened = std::make_unique<tdmi_arrow_file>();
        opened->path = path;
        ARROW_ASSIGN_OR_RAISE(auto input, tandem::open_input(path));
        ARROW_ASSIGN_OR_RAISE(opened->size_bytes, input->GetSize());
        opened->metadata = parquet::ParquetFileReader::Open(input, reader_properties())->metadata();
        ARROW_ASSIGN_OR_RAISE(opened->n_rows, count_rows(*opened->metadata));
        if (tandem::is_uri(path))
            opened->remote = input;
        *file = opened.release();
        return Status::OK();
    });
}

void tdmi_arrow_file_close(tdmi_arrow_file *file)
{
    delete file;
}

tdm_status tdmi_arrow_file_schema(const tdmi_arrow_file *file, struct ArrowSchema *schema,
                                  tdm_error *err)
{
    return attempt(err, "cannot read the schema of", file->path, [&] {
        std::shared_ptr<arrow::Schema> found;
        parquet::ArrowReaderProperties properties;
        ARROW_RETURN_NOT_OK(parquet::arrow::FromParquetSchema(
            file->metadata->schema(), properties, file->metadata->key_value_metadata(), &found));
        ARROW_RETURN_NOT_OK(tandem::need_room_to_export());
        return arrow::ExportSchema(*found, schema);
    });
}

const char *tdmi_arrow_file_value(const tdmi_arrow_file *file, const char *key)
{
    const auto &pairs = file->metadata->key_value_metadata();
    int at = pairs == nullptr ? -1 : pairs->FindKey(key);
    return at < 0 ? nullptr : pairs->value(at).c_str();
}

int64_t tdmi_arrow_file_bytes(const tdmi_arrow_file *file)
{
    return file->size_bytes;
}

int64_t tdmi_arrow_file_rows(const tdmi_arrow_file *file)
{
    return file->n_rows;
}

int tdmi_arrow_file_groups(const tdmi_arrow_file *file)
{
    return file->metadata->num_row_groups();
}

int64_t tdmi_arrow_group_rows(const tdmi_arrow_file *file, int group)
{
    return file->metadata->RowGroup(group)->num_rows();
}

// ---- rows --------------------------------------------------------------------------------------

namespace
{
// Keeps what a stream reads from, and converts exceptions while reading to a status.
class GuardedReader : public arrow::RecordBatchReader
{
  public:
    GuardedReader(std::unique_ptr<parquet::arrow::FileReader> file,
                  std::unique_ptr<arrow::RecordBatchReader> batches)
        : file_(std::move(file)), batches_(std::move(batches))
    {
    }
    std::shared_ptr<arrow::Schema> schema() const override
    {
        return batches_->schema();
    }
    Status ReadNext(std::shared_ptr<arrow::RecordBatch> *batch) override
    {
        return guarded([&] {
            ARROW_RETURN_NOT_OK(batches_->ReadNext(batch));
            return tandem::need_room_to_export(); // our caller is the exporter
        });
    }

  private:
    std::unique_ptr<parquet::arrow::FileReader> file_; // must outlive its batches
    std::unique_ptr<arrow::RecordBatchReader> batches_;
};
} // namespace

static bool is_within(const std::string &leaf, const std::string &column)
{
    return leaf.compare(0, column.size(), column) == 0 &&
           (leaf.size() == column.size() || leaf[column.size()] == '.');
}

// The leaves of the columns named, in the order of the file; all where none is named.
static arrow::Result<std::vector<int>> leaves_of(const tdmi_arrow_file *file,
                                                 const char *const *columns, int n_columns)
{
    const parquet::SchemaDescriptor *schema = file->metadata->schema();
    std::vector<bool> is_found(static_cast<size_t>(n_columns));
    std::vector<int> leaves;
    for (int l = 0; l < schema->num_columns(); l++) {
        bool is_requested = n_columns == 0;
        for (int c = 0; c < n_columns; c++)
            if (is_within(schema->Column(l)->path()->ToDotString(), columns[c]))
                is_requested = is_found[static_cast<size_t>(c)] = true;
        if (is_requested)
            leaves.push_back(l);
    }
    for (int c = 0; c < n_columns; c++)
        if (!is_found[static_cast<size_t>(c)])
            return Status::Invalid("it has no column '", columns[c], "'");
    return leaves;
}

tdm_status tdmi_arrow_file_stream(const tdmi_arrow_file *file, const char *const *columns,
                                  int n_columns, int first_group, int n_groups,
                                  struct ArrowArrayStream *stream, tdm_error *err)
{
    return attempt(err, "cannot read", file->path, [&] {
        ARROW_ASSIGN_OR_RAISE(auto leaves, leaves_of(file, columns, n_columns));
        std::vector<int> groups;
        int end = n_groups < 0 ? tdmi_arrow_file_groups(file) : first_group + n_groups;
        for (int g = first_group; g < end; g++)
            groups.push_back(g);
        parquet::ArrowReaderProperties properties(/*use_threads=*/false);
        properties.set_pre_buffer(false);
        properties.set_batch_size(rows_at_once);
        ARROW_ASSIGN_OR_RAISE(auto reader, parquet::arrow::FileReader::Make(
                                               tandem::pool(), reader_of(file), properties));
        ARROW_ASSIGN_OR_RAISE(auto batches, reader->GetRecordBatchReader(groups, leaves));
        ARROW_RETURN_NOT_OK(tandem::need_room_to_export()); // the caller exports its schema next
        return arrow::ExportRecordBatchReader(
            std::make_shared<GuardedReader>(std::move(reader), std::move(batches)), stream);
    });
}

// ---- pages -------------------------------------------------------------------------------------

static arrow::Result<int> leaf_named(const tdmi_arrow_file *file, const char *column)
{
    const parquet::SchemaDescriptor *schema = file->metadata->schema();
    for (int l = 0; l < schema->num_columns(); l++)
        if (schema->Column(l)->path()->ToDotString() == column)
            return l;
    return Status::Invalid("it has no column '", column, "' of plain values");
}

static bool is_simple(const parquet::ColumnChunkMetaData &chunk)
{
    for (parquet::Encoding::type encoding : chunk.encodings()) // of levels too
        if (encoding != parquet::Encoding::PLAIN && encoding != parquet::Encoding::RLE &&
            encoding != parquet::Encoding::BIT_PACKED &&
            encoding != parquet::Encoding::PLAIN_DICTIONARY &&
            encoding != parquet::Encoding::RLE_DICTIONARY)
            return false;
    return true;
}

static int fixed_bytes_of(const parquet::ColumnDescriptor &column)
{
    return column.physical_type() == parquet::Type::BYTE_ARRAY             ? 0
           : column.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY ? column.type_length()
                                                                           : -1;
}

tdm_status tdmi_arrow_chunk_facts(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_chunk *facts, tdm_error *err)
{
    return attempt(err, "cannot read", file->path, [&] {
        ARROW_ASSIGN_OR_RAISE(int leaf, leaf_named(file, column));
        const parquet::ColumnDescriptor *descriptor = file->metadata->schema()->Column(leaf);
        auto rows = file->metadata->RowGroup(group);
        auto chunk = rows->ColumnChunk(leaf);
        *facts = {};
        facts->n_rows = rows->num_rows();
        facts->n_values = chunk->num_values();
        facts->first_byte = chunk->data_page_offset();
        if (chunk->has_dictionary_page() && chunk->dictionary_page_offset() > 0 &&
            chunk->dictionary_page_offset() < facts->first_byte)
            facts->first_byte = chunk->dictionary_page_offset();
        facts->n_bytes = chunk->total_compressed_size();
        facts->n_unpacked_bytes = chunk->total_uncompressed_size();
        facts->codec = static_cast<int>(chunk->compression());
        facts->max_definition = descriptor->max_definition_level();
        facts->max_repetition = descriptor->max_repetition_level();
        facts->fixed_bytes = fixed_bytes_of(*descriptor);
        facts->is_simple = is_simple(*chunk);
        facts->has_offset_index = chunk->GetOffsetIndexLocation().has_value();
        return Status::OK();
    });
}

tdm_status tdmi_arrow_chunk_pages(const tdmi_arrow_file *file, const char *column, int group,
                                  struct tdmi_arrow_page **pages, int64_t *n_pages, tdm_error *err)
{
    *pages = nullptr;
    *n_pages = 0;
    return attempt(err, "cannot find the pages of", file->path, [&] {
        ARROW_ASSIGN_OR_RAISE(int leaf, leaf_named(file, column));
        auto reader = reader_of(file);
        auto indexes = reader->GetPageIndexReader();
        auto of_group = indexes == nullptr ? nullptr : indexes->RowGroup(group);
        auto index = of_group == nullptr ? nullptr : of_group->GetOffsetIndex(leaf);
        if (index == nullptr)
            return Status::Invalid("row group ", group, " has no offset index of '", column, "'");
        const auto &places = index->page_locations();
        auto *copied = static_cast<tdmi_arrow_page *>(tdmi_alloc(places.size(), sizeof **pages));
        if (copied == nullptr)
            return Status::OutOfMemory("no memory for the places of ", places.size(), " pages");
        for (size_t i = 0; i < places.size(); i++)
            copied[i] = {places[i].offset, places[i].first_row_index,
                         places[i].compressed_page_size};
        *pages = copied;
        *n_pages = static_cast<int64_t>(places.size());
        return Status::OK();
    });
}

tdm_status tdmi_arrow_decompress(int codec, const void *bytes, size_t n_bytes, void *target,
                                 size_t target_bytes, tdm_error *err)
{
    Status status = guarded([&] {
        ARROW_ASSIGN_OR_RAISE(
            auto opened, arrow::util::Codec::Create(static_cast<arrow::Compression::type>(codec)));
        if (opened == nullptr)
            return Status::Invalid("codec ", codec, " is not known here");
        ARROW_ASSIGN_OR_RAISE(int64_t n, opened->Decompress(static_cast<int64_t>(n_bytes),
                                                            static_cast<const uint8_t *>(bytes),
                                                            static_cast<int64_t>(target_bytes),
                                                            static_cast<uint8_t *>(target)));
        if (n != static_cast<int64_t>(target_bytes))
            return Status::Invalid(n, " bytes come out of it, ", target_bytes, " were promised");
        return Status::OK();
    });
    return status.ok() ? TDM_OK
                       : TDM_FAIL(err, tandem::code_of(status), "cannot decompress %zu bytes: %s",
                                  n_bytes, status.message().c_str());
}
