package config

import (
	"fmt"
	"strings"
)

// ParseCameras reads --camera values, each URI or NAME=URI. Unnamed cameras are cam0, cam1 and so on by their place.
func ParseCameras(values []string) ([]Camera, error) {
	cameras := make([]Camera, 0, len(values))
	for i, value := range values {
		camera := Camera{Name: fmt.Sprintf("cam%d", i), URI: value}
		if name, uri, ok := cutCameraName(value); ok {
			camera.Name, camera.URI = name, uri
		}
		if strings.TrimSpace(camera.URI) == "" {
			return nil, fmt.Errorf("camera %d has no address: give a device number, a path, an rtsp:// or http:// address, or demo", i)
		}
		cameras = append(cameras, camera)
	}
	return cameras, nil
}
