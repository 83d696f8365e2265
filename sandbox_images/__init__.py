"""What sandboxes are made of: the base image, with or without a container registry."""

from sandbox_images.base import BASE_IMAGE, base_image_present, ensure_base_image
from sandbox_images.errors import BaseImageError

__all__ = ["BASE_IMAGE", "BaseImageError", "base_image_present", "ensure_base_image"]
