package evaluate

import (
	"path/filepath"
	"slices"
	"strings"
)

// LabelledImage is an image and the file with its label map: a class number or a depth per pixel.
type LabelledImage struct{ Image, LabelMap string }

// mapDirs returns the usual directories of images and of their label maps.
func mapDirs() (images, labels []string) {
	return []string{"images", "JPEGImages", "leftImg8bit"},
		[]string{"masks", "labels", "annotations", "SegmentationClass", "gtFine", "depth", "depths"}
}

// mapEndings returns the endings of image and label map names: none, or those of Cityscapes.
func mapEndings() (images, labels []string) {
	return []string{"", "_leftImg8bit"}, []string{"", "_gtFine_labelTrainIds", "_leftImg8bit"}
}

// FindLabelMaps lists the images of a directory that have a label map: a PNG or NPY file of the same name in a directory next to that of
// the images, as in Ultralytics, ADE20K, Cityscapes and Pascal VOC. split is as for ReadDataset. It returns nil if there are no label maps.
func FindLabelMaps(dir, split string) ([]LabelledImage, error) {
	imageDirs, labelDirs := mapDirs()
	for _, images := range imageDirs {
		for _, labels := range labelDirs {
			from, to := filepath.Join(dir, images), filepath.Join(dir, labels)
			if !exists(from) || !exists(to) {
				continue
			}
			if names := subdirs(from); len(imageFiles(from)) == 0 && len(names) > 0 {
				at, err := choose(names, split)
				if err != nil || at < 0 {
					return nil, err
				}
				from, to = filepath.Join(from, names[at]), filepath.Join(to, names[at])
			}
			if found := pairs(from, to); found != nil {
				return found, nil
			}
		}
	}
	return nil, nil
}

// pairs searches directories and their subdirectories, which Cityscapes has for its cities.
func pairs(images, labels string) (all []LabelledImage) {
	for _, file := range imageFiles(images) {
		if found := labelsOf(file, labels); found != "" {
			all = append(all, LabelledImage{file, found})
		}
	}
	for _, name := range subdirs(images) {
		all = append(all, pairs(filepath.Join(images, name), filepath.Join(labels, name))...)
	}
	return all
}

func labelsOf(img, dir string) string {
	stem := strings.TrimSuffix(filepath.Base(img), filepath.Ext(img))
	ofImages, ofLabels := mapEndings()
	for _, from := range slices.Backward(ofImages) {
		bare, has := strings.CutSuffix(stem, from)
		if !has {
			continue
		}
		for _, to := range ofLabels {
			for _, suffix := range []string{".png", ".npy"} {
				if path := filepath.Join(dir, bare+to+suffix); exists(path) {
					return path
				}
			}
		}
	}
	return ""
}
