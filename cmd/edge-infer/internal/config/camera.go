package config

import (
	"fmt"
	"regexp"
	"strings"
)

var withName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]*)=(.+)$`)

// ParseCameras reads --camera values, each URI or NAME=URI. Unnamed cameras are cam0, cam1 and so on by their place.
func ParseCameras(values []string) ([]Camera, error) {
	cameras := make([]Camera, 0, len(values))
	for i, value := range values {
		camera := Camera{Name: fmt.Sprintf("cam%d", i), URI: value}
		if match := withName.FindStringSubmatch(value); match != nil {
			camera.Name, camera.URI = match[1], match[2]
		}
		if strings.TrimSpace(camera.URI) == "" {
			return nil, fmt.Errorf("camera %d has no address: give a device number, a path, an rtsp:// or http:// address, or demo", i)
		}
		cameras = append(cameras, camera)
	}
	return cameras, nil
}
