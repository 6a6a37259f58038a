package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
)

// parametersHint is the hint for a plain path with a question mark if the part before it exists.
func parametersHint(path string) string {
	before, _, found := strings.Cut(path, "?")
	if _, err := os.Stat(before); !found || err != nil {
		return ""
	}
	return "parameters need file:// before the path"
}

// openFile opens a video, an image or a directory of images.
func openFile(ctx context.Context, u capture.URI, options settings) (capture.Source, error) {
	info, err := os.Stat(u.Address)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, u.NewError("open", capture.ErrNotFound, "no such file", parametersHint(u.Address), nil)
	case err != nil:
		return nil, u.NewError("open", capture.ErrUnavailable, "", "", withoutPath(err))
	case info.IsDir():
		return openDirectory(ctx, u, options)
	case options.EveryFrame && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0: // no watchdog would abandon an open that hangs
		return nil, u.NewError("open", capture.ErrFormat, "a pipe or socket, not a file", "write what comes out of it to a file first", nil)
	case info.Mode().IsRegular() && info.Size() == 0:
		return nil, u.NewError("open", capture.ErrFormat, "the file is empty", "copy it again", nil)
	}
	file, err := os.Open(u.Address)
	if err != nil {
		return nil, u.NewError("open", capture.ErrUnavailable, "", "", withoutPath(err))
	}
	_ = file.Close()
	if IsImage(u.Address) {
		return newImages(ctx, u, []string{u.Address}, options), nil
	}
	path, err := filepath.Abs(u.Address) // a leading slash keeps OpenCV from parsing a protocol in the name
	if err != nil {
		return nil, u.NewError("open", capture.ErrUnavailable, "", "", err)
	}
	api := gocv.VideoCaptureFFmpeg
	if options.backend == byGStreamer || !gocv.VideoRegistry.HasBackend(api) {
		api = gocv.VideoCaptureGstreamer
	}
	v, err := openVideo(u, path, api, options)
	if err != nil && api == gocv.VideoCaptureGstreamer {
		// OpenCV reads Motion JPEG in AVI without FFmpeg and GStreamer.
		v, err = openVideo(u, path, gocv.VideoCaptureOpencvMjpeg, options)
	}
	if err != nil {
		if errors.Is(err, capture.ErrFormat) {
			return nil, err
		}
		hint := "check whether ffprobe recognizes it"
		if api == gocv.VideoCaptureGstreamer && FindPlugin("libgstcoreelements.so") == "" {
			hint = "install GStreamer with gstreamer1.0-plugins-good and gstreamer1.0-libav; without it only Motion JPEG in AVI can be read"
		}
		return nil, u.NewError("open", capture.ErrFormat, "not a video that OpenCV can read", hint, nil)
	}
	v.live = false
	if info.Mode().IsRegular() { // another one cannot be read twice
		err = v.turn(u.Address)
	}
	if err != nil {
		return nil, errors.Join(u.NewError("open", capture.ErrUnavailable, "", "", withoutPath(err)), v.Close())
	}
	if u.FPS > 0 {
		v.fps = u.FPS
	}
	return v, nil
}

// withoutPath returns an error without its path, which the message contains already.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

var imageSuffixes = []string{".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm"}

// IsImage reports whether a file has the extension of an image.
func IsImage(path string) bool {
	return slices.Contains(imageSuffixes, strings.ToLower(filepath.Ext(path)))
}

// otherSuffixes are those of images and videos that Open does not read.
var otherSuffixes = []string{
	".gif", ".jp2", ".j2k", ".jpx", ".avif", ".heic", ".heif", ".jxl", ".tga", ".ico", ".svg", ".psd", ".exr", ".hdr", ".pfm", ".pbm", ".pnm",
	".raw", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".jfif", ".jpe", ".dib", ".wmv", ".asf", ".3gp", ".ogv", ".mts", ".m2ts",
}

// Unread describes the images and videos of a directory, or with nested also of its subdirectories, that are left out because Open does not
// read their format, with their number, as in "3 (2 .avif, 1 .gif)". It returns "" if there are none.
func Unread(directory string, nested bool) string {
	if directory == "" {
		return ""
	}
	directory += string(filepath.Separator) // WalkDir follows a linked directory then
	total, formats := 0, map[string]int{}
	_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		name := strings.ToLower(filepath.Base(path))
		switch suffix := filepath.Ext(name); {
		case err != nil:
			return fs.SkipDir // reading it reports the error
		case path == directory:
		case entry.IsDir() && (!nested || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !entry.IsDir() && !strings.HasPrefix(name, ".") && slices.Contains(otherSuffixes, suffix):
			formats[suffix]++
			total++
		}
		return nil
	})
	if total == 0 {
		return ""
	}
	var counts []string
	for _, suffix := range slices.Sorted(maps.Keys(formats)) {
		counts = append(counts, fmt.Sprintf("%d %s", formats[suffix], suffix))
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(counts, ", "))
}

var videoSuffixes = []string{".mp4", ".m4v", ".mkv", ".avi", ".mov", ".webm", ".ts", ".mpg", ".mpeg", ".mjpeg", ".flv"}

// IsMedia reports whether a file has the extension of an image or video that Open reads. Other files may be readable too.
func IsMedia(name string) bool {
	return IsImage(name) || slices.Contains(videoSuffixes, strings.ToLower(filepath.Ext(name)))
}
