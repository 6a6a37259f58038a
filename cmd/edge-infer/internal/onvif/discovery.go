// Package onvif finds ONVIF cameras and asks them for their streams. What cameras answer is foreign: sizes, counts and times are bounded,
// credentials go to the host that answered only, and no text of a camera can change the configuration that is printed.
package onvif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the questions to cameras.
const (
	queryTime = 15 * time.Second // for all questions to one camera
	queries   = 16               // cameras that are asked at once
)

// maxClockError is the largest error of a camera's clock that is not mentioned, in seconds; a larger one makes capture ignore the clock.
const maxClockError = 5

// Discovery finds cameras.
type Discovery struct {
	// Addresses are cameras to ask instead of probing the local networks: host, host:port or the URL of the device service.
	Addresses []string
	Login     Login
	// AskLogin asks a person for the login if a camera wants one and Login is empty. May be nil.
	AskLogin func() (Login, error)

	interfaces []localInterface // to probe instead of all that carry multicast
	group      netip.AddrPort   // instead of discoveryGroup
}

// Result lists the cameras that have answered.
type Result struct {
	Version int `json:"v"`
	// Interfaces are those that were probed.
	Interfaces []string `json:"interfaces,omitempty"`
	Cameras    []Camera `json:"cameras"`
}

// Run finds and queries the cameras, within a minute for some dozens of them. The result is valid beside an error, which reports that there
// is no stream.
func (d *Discovery) Run(ctx context.Context) (*Result, error) {
	result := &Result{Version: 1, Cameras: []Camera{}}
	targets, err := d.targets(ctx, result)
	if err != nil {
		return result, err
	}
	result.Cameras, err = d.query(ctx, targets)
	if err != nil {
		return result, err
	}
	setNames(result.Cameras)
	if len(result.Cameras) == 0 {
		return result, fmt.Errorf("no ONVIF camera has answered on %s (enable ONVIF in the camera; cameras in another network are asked by "+
			"their address: devices --discover ADDRESS)", strings.Join(result.Interfaces, ", "))
	}
	for i := range result.Cameras {
		if len(result.Cameras[i].Profiles) > 0 {
			return result, nil
		}
	}
	return result, errors.New("no camera has given a stream")
}

// targets returns the cameras to ask.
func (d *Discovery) targets(ctx context.Context, result *Result) (targets []target, err error) {
	for _, address := range d.Addresses {
		service, err := deviceService(address)
		if err != nil {
			return nil, fmt.Errorf("camera %q: %w", clean(address), err)
		}
		targets = append(targets, target{service: service})
	}
	if len(targets) > 0 {
		return targets, nil
	}
	interfaces, group := d.interfaces, d.group
	if interfaces == nil {
		interfaces, err = localInterfaces()
		if err != nil {
			return nil, fmt.Errorf("list network interfaces: %w", err)
		}
		group = discoveryGroup
	}
	if len(interfaces) == 0 {
		return nil, errors.New("no network interface with an IPv4 address carries multicast (give the cameras' addresses)")
	}
	for _, i := range interfaces {
		result.Interfaces = append(result.Interfaces, fmt.Sprintf("%s (%s)", i.name, i.address))
	}
	return search(ctx, interfaces, group, probeTime)
}

// query asks all cameras, and once more those that want a login which a person then gives.
func (d *Discovery) query(ctx context.Context, targets []target) ([]Camera, error) {
	cameras := queryAll(ctx, targets, d.Login)
	var denied []target
	for i := range cameras {
		if cameras[i].denied {
			denied = append(denied, targets[i])
		}
	}
	if len(denied) == 0 || d.Login.User != "" || d.AskLogin == nil {
		return cameras, nil
	}
	login, err := d.AskLogin()
	if err != nil {
		return cameras, err
	}
	again := queryAll(ctx, denied, login)
	for i := range cameras {
		if cameras[i].denied {
			cameras[i] = again[0]
			again = again[1:]
		}
	}
	return cameras, nil
}

// queryAll asks cameras at the same time and returns one result for each.
func queryAll(ctx context.Context, targets []target, login Login) []Camera {
	cameras := make([]Camera, len(targets))
	slots := make(chan struct{}, queries)
	var all sync.WaitGroup
	for i, t := range targets {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, queryTime)
			defer cancel()
			cameras[i] = query(ctx, t, login)
		})
	}
	all.Wait()
	return cameras
}

// Print writes the cameras as a part of a configuration file: the suggested profile of each, the others as comments.
func (r *Result) Print(out io.Writer) error {
	streams := false
	for i := range r.Cameras {
		c := &r.Cameras[i]
		if len(c.Profiles) == 0 {
			fmt.Fprintf(out, "# %s: %s\n", c.title(), c.Reason)
		}
		streams = streams || len(c.Profiles) > 0
	}
	if !streams {
		return nil
	}
	fmt.Fprintln(out, "cameras:")
	for i := range r.Cameras {
		r.Cameras[i].print(out)
	}
	return nil
}

// title describes a camera in a line.
func (c *Camera) title() string {
	text := strings.TrimSpace(c.Manufacturer + " " + c.Model)
	if text == "" {
		text = "camera"
	}
	text += " at " + c.Address
	if c.Firmware != "" {
		text += ", firmware " + c.Firmware
	}
	return text
}

func (c *Camera) print(out io.Writer) {
	if len(c.Profiles) == 0 {
		return
	}
	fmt.Fprintf(out, "  # %s\n", c.title())
	if c.ClockError != nil && math.Abs(*c.ClockError) > maxClockError {
		fmt.Fprintf(out, "  # its clock is wrong by %s: the time of its images will be that of their arrival\n", rounded(*c.ClockError))
	}
	fmt.Fprintf(out, "  - name: %s\n", c.Name)
	profiles := slices.Clone(c.Profiles)
	slices.SortStableFunc(profiles, func(a, b Profile) int { return a.place() - b.place() })
	for _, p := range profiles {
		p.print(out)
	}
}

// place orders a camera's profiles: the one to decode, the one to record, the others.
func (p *Profile) place() int {
	switch {
	case p.Suggested:
		return 0
	case p.Record:
		return 1
	}
	return 2
}

// rounded returns seconds as a duration without more digits than matter.
func rounded(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	if d.Abs() > 2*time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

func (p *Profile) print(out io.Writer) {
	key := [...]string{"uri", "record", "# uri"}[p.place()]
	details := p.Encoding
	if p.Width > 0 && p.Height > 0 {
		details += fmt.Sprintf(" %dx%d", p.Width, p.Height)
	}
	if p.FPS > 0 {
		details += fmt.Sprintf(", %.4g fps", p.FPS)
	}
	fmt.Fprintf(out, "    %s: %s # %s: %s\n", key, quoted(p.URI), p.Name, strings.TrimSpace(details))
}

// quoted returns text in quotation marks, as YAML wants it.
func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded
	return strings.TrimSpace(out.String())
}
