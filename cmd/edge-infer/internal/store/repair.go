package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// repair puts right what a crash or power cut left behind: events that never ended, images without a row or with another size than the row
// says, rows without images. The writer has just opened the database.
func (w *writer) repair() error {
	err := w.queueInterrupted()
	if err != nil {
		return err
	}
	result, err := w.db.exec(`UPDATE events SET ended = 1 WHERE ended = 0`)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 {
		w.Logger.Info("event store: events of an earlier run that was interrupted are ended", "events", n)
	}
	files, err := w.findImages()
	if err != nil {
		return err
	}
	lost, err := w.matchImages(files)
	if err != nil {
		return err
	}
	err = w.db.transaction(func() error {
		for _, number := range lost {
			if _, err := w.db.exec(`UPDATE events SET frame = 0, crop = 0 WHERE number = ?`, number); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range files { // those of no row
		w.removeFiles(name)
	}
	if len(lost) > 0 || len(files) > 0 {
		w.Logger.Info("event store: images repaired", "rows_without_file", len(lost), "files_without_row", len(files))
	}
	return nil
}

// findImages returns the sizes of image files by name. Unfinished ones are removed; files of others are left alone.
func (w *writer) findImages() (map[string]int64, error) {
	files := map[string]int64{}
	root := filepath.Join(w.Directory, imageDirectory)
	days, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		if _, err := time.Parse(time.DateOnly, day.Name()); err != nil || !day.IsDir() {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(root, day.Name()))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := day.Name() + "/" + entry.Name()
			switch {
			case strings.HasSuffix(name, ".jpg.tmp"):
				w.removeFiles(name)
			case strings.HasSuffix(name, "."+frameImage+".jpg"), strings.HasSuffix(name, "."+cropImage+".jpg"):
				info, err := entry.Info()
				if err != nil {
					return nil, err
				}
				files[name] = info.Size()
			}
		}
	}
	return files, nil
}

// matchImages takes the images of rows out of files, sets the size of all images, and returns the rows whose images are not there.
func (w *writer) matchImages(files map[string]int64) (lost []int64, err error) {
	w.images = 0
	rows, err := w.db.query(`SELECT number, id, camera, frame, crop FROM events WHERE frame > 0`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var number, frame, crop int64
		var id, camera string
		if err := rows.Scan(&number, &id, &camera, &frame, &crop); err != nil {
			return nil, err
		}
		frameName, cropName := imageName(camera, id, frameImage), imageName(camera, id, cropImage)
		if files[frameName] != frame || files[cropName] != crop {
			lost = append(lost, number)
			continue
		}
		delete(files, frameName)
		delete(files, cropName)
		w.images += frame + crop
	}
	return lost, rows.Err()
}
