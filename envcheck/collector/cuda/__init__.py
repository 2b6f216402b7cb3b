"""libcuda and NVIDIA's other libraries: found, loaded, asked for their versions."""
