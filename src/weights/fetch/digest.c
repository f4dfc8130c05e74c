/* Both digests of a file in one pass. */
#include "weights/fetch/digest.h"
#include "base/hash/hash.h"
#include "base/hash/md5.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 18 };

tdm_status tdmi_digest_file(const char *path, struct tdmi_digest *digest, tdm_error *err)
{
    tdmi_sha256 sha256;
    tdmi_md5 md5;
    uint8_t bits[32], *piece = tdmi_alloc(PIECE_BYTES, 1);
    ssize_t n = 0;
    tdm_status status = TDM_OK;
    int file = piece ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *digest = (struct tdmi_digest){.bytes = 0};
    if (!piece)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s", path);
    tdmi_sha256_init(&sha256);
    tdmi_md5_init(&md5);
    while (file >= 0 && ((n = read(file, piece, PIECE_BYTES)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0)
            continue;
        tdmi_sha256_add(&sha256, piece, (size_t)n);
        tdmi_md5_add(&md5, piece, (size_t)n);
        digest->bytes += n;
    }
    if (file < 0 || n < 0)
        status = TDM_FAIL(err, TDM_E_INPUT, "cannot read %s: %s", path, strerror(errno));
    tdmi_sha256_result(&sha256, bits);
    tdmi_sha256_hex(bits, digest->sha256);
    tdmi_md5_result(&md5, digest->md5);
    if (file >= 0)
        (void)close(file);
    tdmi_free(piece);
    return status;
}

bool tdmi_digest_is(const struct tdmi_digest *digest, const char *hash)
{
    if (strncmp(hash, "sha256:", 7) == 0)
        return strncmp(digest->sha256, hash + 7, strlen(hash + 7)) == 0;
    return strncmp(hash, "md5:", 4) == 0 && strcmp(digest->md5, hash + 4) == 0;
}
