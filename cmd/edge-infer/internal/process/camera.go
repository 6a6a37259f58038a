package process

import "os"

// CameraCommand is the hidden command of the processes that read CSI cameras; source.ServeCamera is its body.
const CameraCommand = "read-camera"

// CameraChild returns the command line of such a process, nil if this program's path is unknown: then this process reads the cameras.
func CameraChild() []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{program, CameraCommand}
}
