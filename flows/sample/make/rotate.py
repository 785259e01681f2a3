"""A JPEG stored turned, with the EXIF tag that turns it upright again, as telephones write it."""

from __future__ import annotations

import io

from PIL import Image as PilImage

#: How the upright picture is turned before storing, by EXIF orientation.
TURNS = {3: PilImage.Transpose.ROTATE_180, 6: PilImage.Transpose.ROTATE_90, 8: PilImage.Transpose.ROTATE_270}


def stored_turned(data: bytes, orientation: int, *, quality: int = 88) -> bytes:
    """The upright JPEG `data` as a file whose pixels lie on their side and whose tag says so."""
    with PilImage.open(io.BytesIO(data)) as upright:
        turned = upright.transpose(TURNS[orientation])
    exif = PilImage.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    turned.save(out, "JPEG", quality=quality, subsampling="4:2:0", exif=exif.tobytes())
    return out.getvalue()
