# The CUDA toolkit and NCCL, where STEPCAST_CUDA asks for them. No driver and no GPU is needed to build.
#
# Sets the language CUDA up and makes the imported target stepcast_nccl, where NCCL is found. What links CUDA asks
# if(STEPCAST_CUDA). Architectures: A100 (80), H100 and H200 (90), B200 (100); -DCMAKE_CUDA_ARCHITECTURES=90 compiles
# for one.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90 100)
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "STEPCAST_CUDA needs nvcc: install the CUDA toolkit (12 or newer), or put its bin/ on PATH")
endif()
if(DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

find_path(STEPCAST_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(STEPCAST_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
if(STEPCAST_NCCL_INCLUDE AND STEPCAST_NCCL_LIBRARY)
  add_library(stepcast_nccl UNKNOWN IMPORTED)
  set_target_properties(stepcast_nccl PROPERTIES
    IMPORTED_LOCATION ${STEPCAST_NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${STEPCAST_NCCL_INCLUDE})
else()
  message(STATUS "NCCL is not installed (libnccl-dev): the CUDA backend has no communication between ranks")
endif()
