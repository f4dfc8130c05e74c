# Finds nvcc, the CUDA toolkit (12 or newer) and cuDNN 9, also inside the nvidia/ folders of a
# Python environment (-DTANDEM_CUDNN_ROOT=DIR names another place). Ends with one sentence when a
# part is missing.
set(TANDEM_CUDNN_ROOT "" CACHE PATH "folder with cuDNN's include/ and lib/")

find_package(CUDAToolkit 12 QUIET)
if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
  message(FATAL_ERROR "TANDEM_CUDA=ON needs the CUDA toolkit, version 12 or newer, and found no "
    "nvcc of it: put nvcc on the PATH or pass -DCUDAToolkit_ROOT=DIR.")
endif()

file(GLOB cudnn_hints
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cudnn
  /usr/lib/python3*/site-packages/nvidia/cudnn
  /usr/local/lib/python3*/*-packages/nvidia/cudnn)
set(cudnn_hints ${TANDEM_CUDNN_ROOT} ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_INCLUDE_DIRS}/..
  ${cudnn_hints})
find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${cudnn_hints} PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${cudnn_hints}
  PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  message(FATAL_ERROR "TANDEM_CUDA=ON needs cuDNN 9 and found no cudnn_version.h with a "
    "libcudnn.so beside it: install it or pass -DTANDEM_CUDNN_ROOT=DIR.")
endif()
foreach(part MAJOR MINOR PATCHLEVEL)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h line REGEX "define CUDNN_${part} ")
  string(REGEX REPLACE ".*CUDNN_${part} +([0-9]+).*" "\\1" CUDNN_${part} "${line}")
endforeach()
set(TDM_CUDNN_VERSION "${CUDNN_MAJOR}.${CUDNN_MINOR}.${CUDNN_PATCHLEVEL}")
if(TDM_CUDNN_VERSION VERSION_LESS 9)
  message(FATAL_ERROR "TANDEM_CUDA=ON needs cuDNN 9 or newer and found ${TDM_CUDNN_VERSION} in "
    "${CUDNN_INCLUDE_DIR}: pass -DTANDEM_CUDNN_ROOT=DIR of a newer one.")
endif()

set(TDM_HAVE_CUDA 1)
set(TDM_CUDA_VERSION "${CUDAToolkit_VERSION}")
