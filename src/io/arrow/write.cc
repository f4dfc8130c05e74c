/*
 * Writing Parquet through Arrow. Images go to the sink as they come, a page each; the small
 * columns wait for the end of their row group, so that memory holds no images.
 *
 * How a page comes to end after every image: Arrow looks whether a page is full after each call
 * that writes a batch, and a page of one byte is full at once. The small columns are written in one
 * batch, so they get one page a row group.
 */
#include "io/arrow/write.h"
#include "io/arrow/inside.hh"

#include <arrow/util/key_value_metadata.h>
#include <limits>
#include <parquet/column_writer.h>
#include <parquet/file_writer.h>
#include <parquet/properties.h>
#include <vector>

using arrow::Status;
using parquet::Repetition;
using parquet::schema::GroupNode;
using parquet::schema::PrimitiveNode;
using tandem::guarded;

namespace
{
const char *const picture_column = "image";
} // namespace

namespace tandem
{
// Arrow's output stream onto a sink of ours. The error of the sink is kept, for it says more.
class SinkStream : public arrow::io::OutputStream
{
  public:
    explicit SinkStream(const tdmi_byte_sink &sink) : sink_(sink)
    {
    }
    using arrow::io::OutputStream::Write;
    Status Write(const void *bytes, int64_t n_bytes) override
    {
        tdm_status status = sink_.write(sink_.self, bytes, static_cast<size_t>(n_bytes), &problem);
        if (status != TDM_OK)
            return Status::IOError("the sink failed");
        written_ += n_bytes;
        return Status::OK();
    }
    arrow::Result<int64_t> Tell() const override
    {
        return written_;
    }
    Status Close() override
    {
        is_closed_ = true;
        return Status::OK();
    }
    bool closed() const override
    {
        return is_closed_;
    }
    tdm_error problem = {};

  private:
    tdmi_byte_sink sink_;
    int64_t written_ = 0;
    bool is_closed_ = false;
};
} // namespace tandem

struct tdmi_arrow_writer {
    std::shared_ptr<tandem::SinkStream> sink;
    std::vector<tdmi_arrow_type> types;
    std::unique_ptr<parquet::ParquetFileWriter> file;
    parquet::RowGroupWriter *group = nullptr;   // owned by file; NULL between row groups
    parquet::ByteArrayWriter *images = nullptr; // owned by group
    int64_t n_rows = 0;                         // of the row group
};

// Runs call as tandem::attempt() does; the error is that of the sink, or else Arrow's.
template <class Call>
static tdm_status attempt(const tdmi_arrow_writer *writer, tdm_error *err, Call &&call) noexcept
{
    const Status status = guarded(call);
    if (status.ok())
        return TDM_OK;
    if (writer != nullptr && writer->sink != nullptr && writer->sink->problem.code != TDM_OK) {
        if (err != nullptr)
            *err = writer->sink->problem;
        return TDM_WRAP(err, writer->sink->problem.code, "cannot write Parquet");
    }
    return TDM_FAIL(err, tandem::code_of(status), "cannot write Parquet: %s",
                    status.message().c_str());
}

static parquet::Compression::type compression_of(enum tdmi_arrow_codec codec)
{
    return codec == TDMI_ARROW_ZSTD     ? parquet::Compression::ZSTD
           : codec == TDMI_ARROW_SNAPPY ? parquet::Compression::SNAPPY
                                        : parquet::Compression::UNCOMPRESSED;
}

static std::shared_ptr<GroupNode> schema_of(const tdmi_arrow_write_options &options)
{
    parquet::schema::NodeVector nodes;
    nodes.push_back(
        PrimitiveNode::Make(picture_column, Repetition::REQUIRED, parquet::Type::BYTE_ARRAY));
    for (int c = 0; c < options.n_columns; c++) {
        const tdmi_arrow_column &column = options.columns[c];
        nodes.push_back(
            column.type == TDMI_ARROW_TEXT
                ? PrimitiveNode::Make(column.name, Repetition::REQUIRED,
                                      parquet::LogicalType::String(), parquet::Type::BYTE_ARRAY)
                : PrimitiveNode::Make(column.name, Repetition::REQUIRED, parquet::Type::INT32));
    }
    return std::static_pointer_cast<GroupNode>(
        GroupNode::Make("schema", Repetition::REQUIRED, nodes));
}

static std::shared_ptr<parquet::WriterProperties>
properties_of(const tdmi_arrow_write_options &options)
{
    parquet::WriterProperties::Builder builder;
    builder.memory_pool(tandem::pool())
        ->data_pagesize(1)
        ->write_batch_size(std::numeric_limits<int32_t>::max())
        ->max_rows_per_page(std::numeric_limits<int32_t>::max())
        ->enable_page_checksum()
        ->compression(compression_of(options.column_codec))
        ->disable_write_page_index()
        ->set_size_statistics_level(parquet::SizeStatisticsLevel::None)
        ->compression(picture_column, compression_of(options.picture_codec))
        ->disable_dictionary(picture_column)
        ->encoding(picture_column, parquet::Encoding::PLAIN)
        ->disable_statistics(picture_column)
        ->enable_write_page_index(picture_column);
    for (int c = 0; c < options.n_columns; c++)
        if (options.columns[c].is_distinct)
            builder.disable_dictionary(options.columns[c].name);
    return builder.build();
}

tdm_status tdmi_arrow_writer_open(const struct tdmi_byte_sink *sink,
                                  const struct tdmi_arrow_write_options *options,
                                  tdmi_arrow_writer **writer, tdm_error *err)
{
    std::unique_ptr<tdmi_arrow_writer> opened(new (std::nothrow) tdmi_arrow_writer);
    tdm_status status = attempt(opened.get(), err, [&] {
        if (opened == nullptr)
            return Status::OutOfMemory("no memory");
        opened->sink = std::make_shared<tandem::SinkStream>(*sink);
        for (int c = 0; c < options->n_columns; c++)
            opened->types.push_back(options->columns[c].type);
        auto pairs = std::make_shared<arrow::KeyValueMetadata>();
        for (int k = 0; k < options->n_keys; k++)
            pairs->Append(options->keys[k], options->values[k]);
        opened->file = parquet::ParquetFileWriter::Open(opened->sink, schema_of(*options),
                                                        properties_of(*options), pairs);
        return Status::OK();
    });
    *writer = status == TDM_OK ? opened.release() : nullptr;
    return status;
}

tdm_status tdmi_arrow_writer_picture(tdmi_arrow_writer *writer, const void *bytes, size_t n_bytes,
                                     tdm_error *err)
{
    if (n_bytes > std::numeric_limits<int32_t>::max() / 2)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "an image of %zu bytes is too large for a page of Parquet", n_bytes);
    return attempt(writer, err, [&] {
        if (writer->group == nullptr) {
            writer->group = writer->file->AppendRowGroup();
            writer->images = static_cast<parquet::ByteArrayWriter *>(writer->group->NextColumn());
        }
        parquet::ByteArray value(static_cast<uint32_t>(n_bytes),
                                 static_cast<const uint8_t *>(bytes));
        writer->images->WriteBatch(1, nullptr, nullptr, &value);
        writer->n_rows++;
        return Status::OK();
    });
}

static void write_column(parquet::ColumnWriter *column, tdmi_arrow_type type, const void *values,
                         int64_t n)
{
    if (type == TDMI_ARROW_INT32) {
        static_cast<parquet::Int32Writer *>(column)->WriteBatch(
            n, nullptr, nullptr, static_cast<const int32_t *>(values));
        return;
    }
    const char *const *texts = static_cast<const char *const *>(values);
    std::vector<parquet::ByteArray> views;
    views.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++)
        views.emplace_back(std::string_view(texts[i]));
    static_cast<parquet::ByteArrayWriter *>(column)->WriteBatch(n, nullptr, nullptr, views.data());
}

tdm_status tdmi_arrow_writer_end_group(tdmi_arrow_writer *writer, void *const *columns,
                                       tdm_error *err)
{
    if (writer->group == nullptr)
        return TDM_OK;
    return attempt(writer, err, [&] {
        for (size_t c = 0; c < writer->types.size(); c++)
            write_column(writer->group->NextColumn(), writer->types[c], columns[c], writer->n_rows);
        writer->group->Close();
        writer->group = nullptr;
        writer->n_rows = 0;
        return Status::OK();
    });
}

tdm_status tdmi_arrow_writer_finish(tdmi_arrow_writer *writer, tdm_error *err)
{
    if (writer->group != nullptr)
        return TDM_FAIL(err, TDM_E_BUG, "a Parquet file was finished within a row group");
    return attempt(writer, err, [&] {
        writer->file->Close();
        return Status::OK();
    });
}

void tdmi_arrow_writer_free(tdmi_arrow_writer *writer)
{
    // The destructor of a file that is not closed writes its footer, and may throw out of the sink.
    (void)guarded([&] {
        delete writer;
        return Status::OK();
    });
}
