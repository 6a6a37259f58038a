package engine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// Files that nibabel wrote, see testdata/nifti.py: either byte order, both versions, packed, scaled, two volumes, a flat image.
func TestReadNIfTI(t *testing.T) {
	for name, shape := range map[string][]int64{
		"float32.nii": {1, 1, 2, 3, 4}, "int16_big.nii": {1, 2, 2, 3, 4}, "uint16_packed.nii.gz": {1, 2, 2, 3, 4},
		"float64_scaled.nii": {1, 1, 2, 3, 4}, "uint8_flat.nii": {1, 1, 2, 3},
	} {
		file, err := os.Open(filepath.Join("testdata", name))
		require.NoError(t, err)
		tensor, err := engine.ReadNIfTI(file)
		require.NoError(t, file.Close())
		require.NoError(t, err, name)
		require.Equal(t, shape, tensor.Shape, name)
		require.Equal(t, engine.Float32, tensor.Type)
		values, depth := tensor.Float32s(), 1
		if len(shape) == 5 {
			depth = int(shape[4])
		}
		for c := range int(shape[1]) {
			for i := range 2 {
				for j := range 3 {
					for k := range depth {
						require.InDelta(t, i+10*j+100*k+1000*c, values[((c*2+i)*3+j)*depth+k], 1e-4, "%s: voxel %d %d %d of %d", name, i, j, k, c)
					}
				}
			}
		}
	}
}

func TestReadNIfTIRefuses(t *testing.T) {
	whole, err := os.ReadFile("testdata/float32.nii")
	require.NoError(t, err)
	changed := func(at int, bytes ...byte) []byte {
		data := append([]byte{}, whole...)
		copy(data[at:], bytes)
		return data
	}
	for want, data := range map[string][]byte{
		"not a NIfTI file: shorter than its header":                                      whole[:300],
		"not a NIfTI file (.nii or .nii.gz)":                                             changed(0, 1),
		"the elements are in an .img file of their own: make one .nii of both":           changed(344, 'n', 'i', '1'),
		"ends before its elements":                                                       whole[:349],
		"ends after 23 of its 24 elements":                                               whole[:len(whole)-1],
		"has more than its elements":                                                     append(changed(0), 0),
		"element type 128 of NIfTI is none of whole or real numbers":                     changed(70, 128),
		"header: 9 dimensions":                                                           changed(40, 9),
		"header: sides [2 -1 4]":                                                         changed(44, 255, 255),
		"header: the elements begin at 4, within it":                                     changed(108, 0, 0, 128, 64),
		"header: the elements begin at NaN":                                              changed(108, 0, 0, 192, 127),
		"sides [2 3 4 1 2]: what has more than four dimensions is no volume of channels": changed(40, 5, 0, 2, 0, 3, 0, 4, 0, 1, 0, 2, 0),
	} {
		_, err := engine.ReadNIfTI(bytes.NewReader(data))
		require.EqualError(t, err, want)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(whole)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	binary.LittleEndian.PutUint32(packed.Bytes()[packed.Len()-8:], 1) // its checksum
	_, err = engine.ReadNIfTI(&packed)
	require.ErrorIs(t, err, gzip.ErrChecksum)
}

func FuzzReadNIfTI(f *testing.F) {
	addFiles(f, "testdata/*.nii*")
	f.Fuzz(func(t *testing.T, data []byte) {
		tensor, err := engine.ReadNIfTI(bytes.NewReader(data))
		if err == nil {
			require.EqualValues(t, engine.Elements(tensor.Shape)*4, len(tensor.Data))
		}
	})
}
