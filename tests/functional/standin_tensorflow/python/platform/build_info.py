is_cuda_build = True
