/*
 * Whether this program was built with a sanitizer (make asan, make tsan). Plain loops over floats
 * are then ten to thirty times slower, so a test whose subject is numbers may walk the same code
 * over less; it never asks for less of what it walks.
 */
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TANDEM_IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_IS_SANITIZED 1
#endif
#ifndef TANDEM_IS_SANITIZED
#define TANDEM_IS_SANITIZED 0
#endif

/* Before a test's own formula, which needs no watching; what it is compared with does. */
#define UNSANITIZED __attribute__((no_sanitize("address", "undefined", "thread")))

enum { is_sanitized = TANDEM_IS_SANITIZED };
