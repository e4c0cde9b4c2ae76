"""What people read: terminal tables and one self-contained HTML file."""
