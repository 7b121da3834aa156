"""fagen inside other libraries."""
