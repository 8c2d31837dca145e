"""Parts of an EKS cluster."""
