# Finds Arrow C++ and Parquet: the target arrow_cpp and TDM_ARROW_VERSION. 26 or newer, for a
# store made of a URI and a strategy for trying again.
# The wheel carries versioned .so files and headers only, so those are taken as they are.
set(arrow_minimum 26.0.0)
if(PkgConfig_FOUND)
  pkg_check_modules(ARROW_SYSTEM QUIET IMPORTED_TARGET arrow>=${arrow_minimum}
    parquet>=${arrow_minimum})
endif()
if(ARROW_SYSTEM_FOUND)
  add_library(arrow_cpp INTERFACE)
  target_link_libraries(arrow_cpp INTERFACE PkgConfig::ARROW_SYSTEM)
  set(TDM_ARROW_VERSION "${ARROW_SYSTEM_arrow_VERSION}")
else()
  file(GLOB arrow_library ${deps}/arrow/lib/libarrow.so.*)
  file(GLOB parquet_library ${deps}/arrow/lib/libparquet.so.*)
  set(arrow_config ${deps}/arrow/include/arrow/util/config.h)
  if(arrow_library AND parquet_library AND EXISTS ${arrow_config})
    file(STRINGS ${arrow_config} line REGEX "define ARROW_VERSION_STRING")
    string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" TDM_ARROW_VERSION "${line}")
    add_library(arrow_cpp INTERFACE)
    target_include_directories(arrow_cpp SYSTEM INTERFACE ${deps}/arrow/include)
    target_link_libraries(arrow_cpp INTERFACE ${parquet_library} ${arrow_library})
  endif()
endif()
