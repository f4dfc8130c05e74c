/* Both digests of a file in one pass. */
#include "weights/fetch/digest.h"
#include "base/hash/hash.h"
#include "base/hash/md5.h"
#include "base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 18 };

tdm_status tdmi_digest_file(const char *path, struct tdmi_digest *digest, tdm_error *err)
{
    tdmi_sha256 sha256;
    tdmi_md5 md5;
    uint8_t bits[32];
    ssize_t n = 0;
    TDMI_AT_END(tdmi_free_at) uint8_t *piece = NULL;
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    TDMI_AT_END(tdmi_close_at) const int file = open(path, O_RDONLY | O_CLOEXEC);
    *digest = (struct tdmi_digest){.bytes = 0};
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
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read %s: %s", path, strerror(errno));
    tdmi_sha256_result(&sha256, bits);
    tdmi_sha256_hex(bits, digest->sha256);
    tdmi_md5_result(&md5, digest->md5);
    return TDM_OK;
}

bool tdmi_digest_is(const struct tdmi_digest *digest, const char *hash)
{
    if (strncmp(hash, "sha256:", 7) == 0)
        return strncmp(digest->sha256, hash + 7, strlen(hash + 7)) == 0;
    return strncmp(hash, "md5:", 4) == 0 && strcmp(digest->md5, hash + 4) == 0;
}
