"""Scripts become clips: a voice, a delivery, a scene, and the questions asked about them."""
