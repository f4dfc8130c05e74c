# Defences of compiler and linker against bugs that overwrite memory: each where they have
# it. TANDEM_HARDEN=OFF leaves all out, to measure what they cost (bench/README.md). Sets
# harden_compile, which nvcc hands to the host's compiler as well.
option(TANDEM_HARDEN "build in the compiler's and the linker's defences" ON)
set(harden_compile)
if(NOT TANDEM_HARDEN)
  return()
endif()
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

# Canaries in stack frames, frames that cannot step over the guard page, and marks where indirect
# jumps may land (x86).
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full)
  string(MAKE_C_IDENTIFIER "TANDEM_HAS${flag}" found)
  check_c_compiler_flag(${flag} ${found})
  if(${found})
    list(APPEND harden_compile ${flag})
  endif()
endforeach()

# Sizes checked in calls of the C library. They are known to optimizing compilers only, which the C
# library warns about, and sanitizers check the same calls themselves.
if(NOT TANDEM_SANITIZE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  foreach(level 3 2)
    set(fortify -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level})
    list(JOIN fortify " " CMAKE_REQUIRED_FLAGS)
    string(PREPEND CMAKE_REQUIRED_FLAGS "-Werror ${CMAKE_C_FLAGS_${type}} ")
    check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }"
      TANDEM_HAS_FORTIFY_${level})
    if(TANDEM_HAS_FORTIFY_${level})
      list(APPEND harden_compile ${fortify})
      break()
    endif()
  endforeach()
  unset(CMAKE_REQUIRED_FLAGS)
endif()
add_compile_options(${harden_compile})

# Tables of addresses are filled when a file is loaded and read-only from then on; stacks hold no
# code; programs lie at another address each time (CMAKE_POSITION_INDEPENDENT_CODE compiles for it).
foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  string(MAKE_C_IDENTIFIER "TANDEM_HAS${flag}" found)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${flag})
  check_c_source_compiles("int main(void) { return 0; }" ${found})
  if(${found})
    add_link_options(${flag})
  endif()
endforeach()
set(CMAKE_REQUIRED_LINK_OPTIONS -pie)
check_c_source_compiles("int main(void) { return 0; }" TANDEM_HAS_PIE)
if(TANDEM_HAS_PIE)
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
endif()
unset(CMAKE_REQUIRED_LINK_OPTIONS)
