package evaluate

import (
	"path/filepath"
	"slices"
	"strings"
)

// Labelled is a picture and the file that says something of every place of it: a class number or a depth for each pixel.
type Labelled struct{ Picture, Labels string }

// mapFolders are where datasets have their pictures, and where the labels of these lie.
func mapFolders() (pictures, labels []string) {
	return []string{"images", "JPEGImages", "leftImg8bit"},
		[]string{"masks", "labels", "annotations", "SegmentationClass", "gtFine", "depth", "depths"}
}

// mapEndings are what the names of a picture and of its labels end in, before the suffix: those of Cityscapes beside nothing.
func mapEndings() (pictures, labels []string) {
	return []string{"", "_leftImg8bit"}, []string{"", "_gtFine_labelTrainIds", "_leftImg8bit"}
}

// FindLabelMaps lists the pictures of a folder that have a map of labels: a PNG or NPY file for each picture, of the same name, in a folder
// beside that of the pictures, as Ultralytics, ADE20K, Cityscapes and Pascal VOC have them. split is as for ReadDataset. It is nil where a
// folder has no such labels; pictures without one are left out.
func FindLabelMaps(dir, split string) ([]Labelled, error) {
	pictureFolders, labelFolders := mapFolders()
	for _, pictures := range pictureFolders {
		for _, labels := range labelFolders {
			from, to := filepath.Join(dir, pictures), filepath.Join(dir, labels)
			if !exists(from) || !exists(to) {
				continue
			}
			if names := subfolders(from); len(pictureFiles(from)) == 0 && len(names) > 0 {
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

// pairs looks into folders and those in them, which Cityscapes has for its towns.
func pairs(pictures, labels string) (all []Labelled) {
	for _, file := range pictureFiles(pictures) {
		if found := labelsOf(file, labels); found != "" {
			all = append(all, Labelled{file, found})
		}
	}
	for _, name := range subfolders(pictures) {
		all = append(all, pairs(filepath.Join(pictures, name), filepath.Join(labels, name))...)
	}
	return all
}

func labelsOf(picture, folder string) string {
	stem := strings.TrimSuffix(filepath.Base(picture), filepath.Ext(picture))
	ofPictures, ofLabels := mapEndings()
	for _, from := range slices.Backward(ofPictures) {
		bare, has := strings.CutSuffix(stem, from)
		if !has {
			continue
		}
		for _, to := range ofLabels {
			for _, suffix := range []string{".png", ".npy"} {
				if path := filepath.Join(folder, bare+to+suffix); exists(path) {
					return path
				}
			}
		}
	}
	return ""
}
