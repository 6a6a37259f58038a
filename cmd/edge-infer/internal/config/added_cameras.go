package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/edge-infer/edge-infer/capture"
)

// AddedCamera is a camera that was added on the page.
type AddedCamera struct {
	Name   string `yaml:"name"`
	URI    string `yaml:"uri"`              // with the login
	Record string `yaml:"record,omitempty"` // as Camera.Record
}

// addedCameras is the form of the file that lists the added cameras.
type addedCameras struct {
	Cameras []AddedCamera `yaml:"cameras"`
}

const addedComment = "# Cameras added on the web page; their addresses may contain passwords.\n"

// maxAdded bounds the number of added cameras.
const maxAdded = 256

// addedFile is where the added cameras are kept.
func (c *Config) addedFile() pageFile {
	return c.pageFile("cameras.yaml", "cameras", addedComment, 0o600)
}

// readAdded reads the added cameras.
func readAdded(file pageFile) (all addedCameras, err error) {
	if err := file.read(&all); err != nil {
		return addedCameras{}, fmt.Errorf("cameras added on the page: %s: %w (mend it, or remove it and add them again)", file.path, message(err))
	}
	return all, nil
}

// applyAdded appends the cameras that were added on the page. Cameras on the command line or in the environment are all there are, and a
// configured camera takes the place of an added one with its name. Addresses are taken as they are: they were not written by who may read
// this process's environment.
func (l *layers) applyAdded() {
	if l.fixedCameras() != "" {
		return
	}
	file := l.addedFile()
	all, err := readAdded(file)
	if err != nil {
		l.wrong(location{source: ofNone}, err)
		return
	}
	for _, camera := range all.Cameras {
		if l.hasCamera(camera.Name) {
			continue
		}
		l.add(camera, location{source: ofNone, name: file.path})
	}
}

func (l *layers) add(camera AddedCamera, at location) {
	l.at[fmt.Sprintf("cameras[%d]", len(l.Cameras))] = at
	l.Cameras = append(l.Cameras, Camera{Name: camera.Name, URI: camera.URI, Record: camera.Record})
}

func (c *Config) hasCamera(name string) bool {
	return slices.ContainsFunc(c.Cameras, func(known Camera) bool { return known.Name == name })
}

// fixedCameras returns the flag or the variable that names all cameras, empty if neither does.
func (l *layers) fixedCameras() string {
	if at, known := l.at["cameras"]; known && (at.source == ofFlags || at.source == ofEnvironment) {
		return at.name
	}
	return ""
}

// AddedCameras reads and changes the cameras that were added on the page. Changes are in force after the next reload. Goroutines may share
// it.
type AddedCameras struct {
	Sources *Sources

	mutex sync.Mutex
}

// Names returns the names of the added cameras.
func (a *AddedCameras) Names() ([]string, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	_, all, err := a.load()
	names := make([]string, 0, len(all.Cameras))
	for _, camera := range all.Cameras {
		names = append(names, camera.Name)
	}
	return names, err
}

// load returns the configuration, and the added cameras that are a part of it.
func (a *AddedCameras) load() (*layers, addedCameras, error) {
	l := a.Sources.configured()
	if err := l.err(); err != nil {
		return nil, addedCameras{}, err
	}
	if fixed := l.fixedCameras(); fixed != "" {
		return nil, addedCameras{}, fmt.Errorf("the cameras of this run are those of %s: start it with --config FILE to add others here", fixed)
	}
	all, err := readAdded(l.addedFile())
	return l, all, err
}

// Add adds a camera, unless a run could not start with it. Its error names what is wrong, as for a configured camera.
func (a *AddedCameras) Add(camera AddedCamera) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	l, all, err := a.load()
	switch {
	case err != nil:
		return err
	case l.hasCamera(camera.Name):
		return fmt.Errorf("there is a camera %q already", camera.Name)
	case len(all.Cameras) >= maxAdded:
		return fmt.Errorf("%d cameras have been added here, more belong into the configuration file", maxAdded)
	}
	for _, address := range []string{camera.URI, camera.Record} {
		if err := checkAdded(address); err != nil {
			return err
		}
	}
	l.add(camera, location{source: ofNone})
	l.check(a.Sources.Scope)
	if err := errors.Join(l.err(), l.CheckModel()); err != nil {
		return err
	}
	all.Cameras = append(all.Cameras, camera)
	return l.saveAdded(all)
}

// checkAdded refuses addresses that would let somebody at the page read files of this machine or run a pipeline of their own. An empty one
// passes.
func checkAdded(address string) error {
	if address == "" {
		return nil
	}
	u, err := capture.ParseURI(address)
	if err != nil {
		return err
	}
	switch u.Kind {
	case capture.RTSP, capture.HTTP, capture.Device, capture.CSI, capture.Demo:
		return nil
	}
	return errors.New("give rtsp://, http://, /dev/videoN or csi://N (files, directories and pipelines are added in the configuration file)")
}

// Remove removes an added camera.
func (a *AddedCameras) Remove(name string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	l, all, err := a.load()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all.Cameras), func(camera AddedCamera) bool { return camera.Name == name })
	switch {
	case len(left) == len(all.Cameras):
		return fmt.Errorf("camera %q was not added here: remove it from the configuration file", name)
	case len(l.Cameras) == 1:
		return errors.New("the last camera cannot be removed: add another one first")
	}
	all.Cameras = left
	return l.saveAdded(all)
}

// Writable returns why Add could not save, or nil. It tries.
func (a *AddedCameras) Writable() error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	l, _, err := a.load()
	if err != nil {
		return err
	}
	file := l.addedFile()
	return file.writable()
}

func (c *Config) saveAdded(all addedCameras) error {
	file := c.addedFile()
	return file.save(all)
}

// WithLogin returns an address of a server with a user name and a password, unless it has them already or user is empty.
func WithLogin(address, user, password string) (string, error) {
	if user == "" || address == "" {
		return address, nil
	}
	scheme, rest, found := strings.Cut(address, "://")
	authority, _, _ := strings.Cut(rest, "/")
	switch {
	case !found || scheme == "csi":
		return "", errors.New("a user name and a password need an address of a server, such as rtsp://192.0.2.10/stream")
	case strings.Contains(authority, "@"):
		return "", errors.New("the address has a user name already: leave it out there, or leave the fields empty")
	}
	return scheme + "://" + url.UserPassword(user, password).String() + "@" + rest, nil
}
