"""What a Tensor Core's arithmetic must look like, and what a micro-kernel's facts therefore say."""
