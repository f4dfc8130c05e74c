/* Tokens are kept and compared as digests, which have one length and do not give the token away. */
#include "serve/guard.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "tandem/log.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { token_file_bytes = 4096 };

static void digest_of(const char *text, size_t length_bytes, uint8_t digest[32])
{
    tdmi_sha256 state;
    tdmi_sha256_init(&state);
    tdmi_sha256_add(&state, text, length_bytes);
    tdmi_sha256_result(&state, digest);
}

static tdm_status take(struct tdmi_guard *guard, const char *token, size_t length, const char *from,
                       tdm_error *err)
{
    for (size_t i = 0; i < length; i++) {
        if (token[i] <= ' ' || token[i] > '~')
            return TDM_FAIL(err, TDM_E_USAGE,
                            "the token of %s has a blank or a byte that is no visible ASCII at "
                            "place %zu",
                            from, i + 1);
    }
    if (length < TDMI_TOKEN_LEAST || length > TDMI_TOKEN_MOST)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the token of %s has %zu characters; %d to %d are accepted, as "
                        "'openssl rand -hex 16' makes them",
                        from, length, TDMI_TOKEN_LEAST, TDMI_TOKEN_MOST);
    digest_of(token, length, guard->digest);
    guard->has_token = true;
    return TDM_OK;
}

tdm_status tdmi_guard_set(struct tdmi_guard *guard, const char *token, const char *from,
                          tdm_error *err)
{
    return take(guard, token, strlen(token), from, err);
}

tdm_status tdmi_guard_read(struct tdmi_guard *guard, const char *path, tdm_error *err)
{
    void *bytes = NULL;
    size_t length = 0;
    TDM_TRY(tdmi_file_read(path, token_file_bytes, &bytes, &length, err), err, "reading the token");
    tdm_status status = take(guard, bytes, strcspn(bytes, "\r\n"), path, err);
    explicit_bzero(bytes, length);
    tdmi_free(bytes);
    return status;
}

void tdmi_guard_warn(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        tdm_log(TDM_LOG_WARNING, "others may read the token in %s; chmod 600 keeps it", path);
}

bool tdmi_guard_lets_in(const struct tdmi_guard *guard, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    uint8_t digest[32], different = 0;
    const size_t skipped = sizeof scheme - 1;
    if (!guard->has_token)
        return true;
    if (!authorization || strncasecmp(authorization, scheme, skipped) != 0)
        return false;
    authorization += skipped + strspn(authorization + skipped, " ");
    digest_of(authorization, strlen(authorization), digest);
    for (int i = 0; i < 32; i++)
        different |= (uint8_t)(digest[i] ^ guard->digest[i]);
    return different == 0;
}

/* "localhost:8080", "127.0.0.1", "[::1]:80": whatever port, which a tunnel may have changed. */
static bool is_loopback_host(const char *host)
{
    static const char *const names[] = {"localhost", "[::1]"};
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0)
            return host[length] == '\0' || host[length] == ':';
    }
    return strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.:")] == '\0';
}

const char *tdmi_guard_refuses(const struct tdmi_guard *guard, const char *host, const char *origin)
{
    static const char scheme[] = "http://";
    if (guard->has_token)
        return NULL;
    if (host && !is_loopback_host(host))
        return "the request is for a host that is not this machine's loopback; without a token "
               "only "
               "localhost, 127.0.0.1 and [::1] are answered";
    if (origin && (!host || strncasecmp(origin, scheme, sizeof scheme - 1) != 0 ||
                   strcasecmp(origin + sizeof scheme - 1, host) != 0))
        return "the request comes from a page of another site; without a token only this server's "
               "own page is answered";
    return NULL;
}
