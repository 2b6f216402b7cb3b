"""The made-up address of envcheck's own index, which uv reaches through a proxy: the same in every run.

Port and secret change from run to run; uv's cache knows files again by this address.
"""

HOST = "envcheck.invalid"  # reserved by RFC 2606: no network has it
INDEX_URL = f"http://{HOST}/simple/"
FILES_URL = f"http://{HOST}/files/"
