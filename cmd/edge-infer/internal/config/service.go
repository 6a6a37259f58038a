package config

import (
	"path/filepath"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// passwordVariable holds the password for the broker; a password file has precedence.
const passwordVariable = "EDGE_INFER_MQTT_PASSWORD"

// tokenVariable and remotePasswordVariable hold the secrets for inference servers; files have precedence.
const (
	tokenVariable          = "EDGE_INFER_REMOTE_TOKEN"
	remotePasswordVariable = "EDGE_INFER_REMOTE_PASSWORD"
)

// applyService applies values of the service manager and the user's environment where nothing is configured: the broker's password and the
// directories of the event spool and the event store.
func (c *Config) applyService(lookup func(string) (string, bool)) {
	value := func(name string) string {
		text, _ := lookup(name)
		return text
	}
	m := &c.MQTT
	m.Password = value(passwordVariable)
	c.Remote.Token, c.Remote.Password = value(tokenVariable), value(remotePasswordVariable)
	if credentials := value("CREDENTIALS_DIRECTORY"); m.PasswordFile == "" && credentials != "" {
		path := filepath.Join(credentials, "mqtt-password")
		if info, err := boundedfile.Stat(path); err == nil && info.Size() > 0 {
			m.PasswordFile = path
		}
	}
	if credentials := value("CREDENTIALS_DIRECTORY"); c.Remote.TokenFile == "" && c.Remote.User == "" && credentials != "" {
		path := filepath.Join(credentials, "remote-token")
		if info, err := boundedfile.Stat(path); err == nil && info.Size() > 0 {
			c.Remote.TokenFile = path
		}
	}
	c.State = stateDirectory(c.Name, value)
	if c.Clips.Directory == "" && c.State != "" {
		c.Clips.Directory = filepath.Join(c.State, "clips")
	}
	if c.Samples.Directory == "" && c.State != "" {
		c.Samples.Directory = filepath.Join(c.State, "samples")
	}
	if m.Spool == "" && c.State != "" {
		m.Spool = filepath.Join(c.State, "spool")
	}
	if c.Events.Directory == "" && c.State != "" {
		c.Events.Directory = filepath.Join(c.State, "events")
	}
}

// stateDirectory returns systemd's state directory, or the user's; if there is neither it is empty, and events stay in memory.
func stateDirectory(device string, value func(string) string) string {
	if state := value("STATE_DIRECTORY"); state != "" {
		return filepath.SplitList(state)[0]
	}
	state := value("XDG_STATE_HOME")
	if state == "" {
		home := value("HOME")
		if home == "" {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "edge-infer", spool.DirName(device))
}
