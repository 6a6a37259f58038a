package evaluate

import (
	"path/filepath"
	"slices"
	"strings"
)

// LabelledImage is an image and the file that says something of every place of it: a class number or a depth for each pixel.
type LabelledImage struct{ Image, LabelMap string }

// mapDirs are where datasets have their images, and where the labels of these lie.
func mapDirs() (images, labels []string) {
	return []string{"images", "JPEGImages", "leftImg8bit"},
		[]string{"masks", "labels", "annotations", "SegmentationClass", "gtFine", "depth", "depths"}
}

// mapEndings are what the names of an image and of its labels end in, before the suffix: those of Cityscapes beside nothing.
func mapEndings() (images, labels []string) {
	return []string{"", "_leftImg8bit"}, []string{"", "_gtFine_labelTrainIds", "_leftImg8bit"}
}

// FindLabelMaps lists the images of a directory that have a map of labels: a PNG or NPY file for each image, of the same name, in a directory
// beside that of the images, as Ultralytics, ADE20K, Cityscapes and Pascal VOC have them. split is as for ReadDataset. It is nil where a
// directory has no such labels; images without one are left out.
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

// pairs looks into directories and those in them, which Cityscapes has for its towns.
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
