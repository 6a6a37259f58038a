"""Writes the volumes of this directory: python3 nifti.py (needs nibabel). Each holds i + 10 j + 100 k + 1000 c at voxel (i, j, k) of volume c."""
import gzip
import os

import nibabel
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
i, j, k, c = np.indices((2, 3, 4, 2))
count = i + 10 * j + 100 * k + 1000 * c


def save(name, array, kind=nibabel.Nifti1Image, order="<", slope=None, inter=None, packed=False):
    image = kind(array, np.eye(4), header=kind.header_class(endianness=order))
    image.header.set_data_dtype(array.dtype.newbyteorder(order))
    if slope is not None:
        image.header.set_slope_inter(slope, inter)
    data = image.to_bytes()
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(gzip.compress(data, mtime=0) if packed else data)


save("float32.nii", count[..., 0].astype("f4"))
save("int16_big.nii", count.astype("i2"), order=">")
save("uint16_packed.nii.gz", count.astype("u2"), kind=nibabel.Nifti2Image, packed=True)
# What is stored is a tenth less a half, so that slope and intercept give the numbers back.
save("float64_scaled.nii", (count[..., 0] - 5) / 10, kind=nibabel.Nifti2Image, order=">", slope=10, inter=5)
save("uint8_flat.nii", count[:, :, 0, 0].astype("u1"))
