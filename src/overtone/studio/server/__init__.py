"""The studio's server: pages, a JSON API for raters and one for the owner, and sounds.

messages     the JSON API as records
"""
