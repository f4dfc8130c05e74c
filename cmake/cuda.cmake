# Finds nvcc and the CUDA toolkit (12 or newer). Sets TDM_HAVE_CUDA, or cuda_missing: one sentence
# about what is not there. cuDNN and cuBLASLt are not looked for, nor headers of theirs: they are
# opened at run time (docs/design/gpu.md).
set(cuda_missing "")

find_package(CUDAToolkit 12 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  set(cuda_missing "the CUDA toolkit, version 12 or newer, and found no nvcc of it: put nvcc on the \
PATH or pass -DCUDAToolkit_ROOT=DIR.")
endif()

if(NOT cuda_missing)
  set(TDM_HAVE_CUDA 1)
  set(TDM_CUDA_VERSION "${CUDAToolkit_VERSION}")
  # Machine code for these compute capabilities (later GPUs of the same generation run it, too), and
  # PTX of the last one for newer GPUs.
  set(TANDEM_CUDA_ARCHS "" CACHE STRING
    "compute capabilities to build kernels for, as 80;90 (empty: those of data centre GPUs)")
  set(cuda_archs ${TANDEM_CUDA_ARCHS})
  if(NOT cuda_archs)
    set(cuda_archs 80 90)
    if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND cuda_archs 100)
    endif()
  endif()
  set(cuda_code)
  foreach(arch ${cuda_archs})
    if(NOT arch MATCHES "^[0-9]+[af]?$")
      message(FATAL_ERROR "TANDEM_CUDA_ARCHS=${TANDEM_CUDA_ARCHS}: '${arch}' is no compute "
        "capability; write them as nvcc does without the dot, with semicolons: 80;90")
    endif()
    list(APPEND cuda_code -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  list(GET cuda_archs -1 newest)
  list(APPEND cuda_code -gencode arch=compute_${newest},code=compute_${newest})
endif()

# cuda_objects(result sources…): an object file of each .cu, by nvcc itself, so that no flag that is
# meant for C reaches it.
function(cuda_objects result)
  set(objects)
  list(JOIN harden_compile "," harden)
  if(harden)
    set(harden -Xcompiler ${harden})
  endif()
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++17 -O3 -lineinfo ${cuda_code}
        -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/src
        -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wno-unused-function
        -Xcompiler -fno-exceptions,-fno-threadsafe-statics # nothing of the C++ library is linked
        # Ninja compiles each time where this file names the object otherwise than its rule.
        ${harden} -MD -MF ${object}.d -MT cuda/${name}.o -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cuda)
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
