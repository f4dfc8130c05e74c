/*
 * TDMI_MULTIVERSION before a function compiles it once per vector width and picks one when the
 * program starts. Only for loops whose lanes are independent: with -ffp-contract=off every version
 * then computes the same bits, so the choice is free. Sanitizers cannot run in the resolver, and
 * Clang before 17 mangles such functions; both get the plain function.
 */
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define TDMI_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TDMI_MULTIVERSION
#endif
