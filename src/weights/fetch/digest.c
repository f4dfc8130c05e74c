/* Both digests in one pass. */
#include "weights/fetch/digest.h"
#include "base/hash/hash.h"
#include "base/hash/md5.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 18 };

struct digesting {
    tdmi_sha256 sha256;
    tdmi_md5 md5;
};

static void begin(struct digesting *it, struct tdmi_digest *digest)
{
    *digest = (struct tdmi_digest){.bytes = 0};
    tdmi_sha256_init(&it->sha256);
    tdmi_md5_init(&it->md5);
}

static void add(struct digesting *it, const void *bytes, size_t n, struct tdmi_digest *digest)
{
    tdmi_sha256_add(&it->sha256, bytes, n);
    tdmi_md5_add(&it->md5, bytes, n);
    digest->bytes += (int64_t)n;
}

static void end(struct digesting *it, struct tdmi_digest *digest)
{
    uint8_t bits[32];
    tdmi_sha256_result(&it->sha256, bits);
    tdmi_sha256_hex(bits, digest->sha256);
    tdmi_md5_result(&it->md5, digest->md5);
}

void tdmi_digest_bytes(const void *bytes, size_t n, struct tdmi_digest *digest)
{
    struct digesting it;
    begin(&it, digest);
    add(&it, bytes, n, digest);
    end(&it, digest);
}

tdm_status tdmi_digest_file(const char *path, struct tdmi_digest *digest, tdm_error *err)
{
    struct digesting it;
    ssize_t n = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *piece = NULL;
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    TDMI_AT_END(tdmi_close_at) const int file = open(path, O_RDONLY | O_CLOEXEC);
    begin(&it, digest);
    while (file >= 0 && ((n = read(file, piece, PIECE_BYTES)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            add(&it, piece, (size_t)n, digest);
    if (file < 0 || n < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read %s: %s", path, strerror(errno));
    end(&it, digest);
    return TDM_OK;
}

bool tdmi_digest_is(const struct tdmi_digest *digest, const char *hash)
{
    if (strncmp(hash, "sha256:", 7) == 0)
        return strncmp(digest->sha256, hash + 7, strlen(hash + 7)) == 0;
    return strncmp(hash, "md5:", 4) == 0 && strcmp(digest->md5, hash + 4) == 0;
}
