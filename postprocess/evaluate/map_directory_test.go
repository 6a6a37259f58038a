package evaluate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindLabelMaps(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		split string
		want  []string // images and their labels
	}{
		"Ultralytics": {
			[]string{"images/train/a.jpg", "masks/train/a.png", "images/val/b.jpg", "images/val/unlabelled.jpg", "masks/val/b.png"},
			"",
			[]string{"images/val/b.jpg", "masks/val/b.png"},
		},
		"a split": {
			[]string{"images/train/a.jpg", "masks/train/a.png", "images/val/b.jpg", "masks/val/b.png"},
			"train",
			[]string{"images/train/a.jpg", "masks/train/a.png"},
		},
		"VOC": {[]string{"JPEGImages/a.jpg", "SegmentationClass/a.png"}, "", []string{"JPEGImages/a.jpg", "SegmentationClass/a.png"}},
		"ADE20K": {
			[]string{"images/validation/a.jpg", "annotations/validation/a.png"},
			"",
			[]string{"images/validation/a.jpg", "annotations/validation/a.png"},
		},
		"depth":     {[]string{"images/a.png", "depth/a.npy"}, "", []string{"images/a.png", "depth/a.npy"}},
		"detection": {[]string{"images/a.jpg", "labels/a.txt"}, "", nil},
		"Cityscapes": {
			[]string{
				"leftImg8bit/val/bonn/x_leftImg8bit.png", "gtFine/val/bonn/x_gtFine_labelTrainIds.png", "gtFine/val/bonn/x_gtFine_color.png",
			},
			"",
			[]string{"leftImg8bit/val/bonn/x_leftImg8bit.png", "gtFine/val/bonn/x_gtFine_labelTrainIds.png"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range c.files {
				path := filepath.Join(dir, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			found, err := FindLabelMaps(dir, c.split)
			require.NoError(t, err)
			var got []string
			for _, l := range found {
				for _, path := range []string{l.Image, l.LabelMap} {
					relative, err := filepath.Rel(dir, path)
					require.NoError(t, err)
					got = append(got, relative)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
