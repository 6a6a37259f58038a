// Package mqtt takes detections, state and events from the frame loop to an MQTT broker without ever holding up the frame loop. Detections
// are newest-wins in memory; events go through a durable queue; every message is delivered, dropped and counted, or still queued. The
// package also contains remote control and Home Assistant discovery.
package mqtt

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// Client publishes for one device: it fills the device's topics, and its Link takes them to the broker. Fill in the exported fields, Open
// it, Run it, Close it; the fields must not change after Open. All methods may be called from any goroutine, the publishing ones at any
// time between Open and Close, connected or not.
type Client struct {
	Root   string // first topic level, topic.DefaultRoot when empty
	Device string // second topic level
	Link

	// DetectionsInterval is the minimum time between two detections messages of a camera; 0 publishes every frame.
	DetectionsInterval time.Duration
	// CountInterval is the minimum time between two messages of a count, of a line or of a label's snapshot, so that a flickering detection
	// does not fill the database of who records them. The first object after none does not wait. 0 publishes every change.
	CountInterval time.Duration

	// DiscoveryPrefix is the first topic level of Home Assistant's discovery, usually "homeassistant"; empty turns it off.
	DiscoveryPrefix string
	// Frigate is the topic prefix of the additional Frigate-compatible messages; empty disables them.
	Frigate topic.Frigate
	// DeepStream is the topic of the additional DeepStream-compatible messages; empty disables them.
	DeepStream string
	// DeepStreamFull publishes events in DeepStream's full schema instead of frames in the minimal one.
	DeepStreamFull bool
	// Changed is called after each command that was carried out, on the goroutine of the command; camera is empty for the device's own. It may
	// be nil.
	Changed func(camera, control, value, broker string)
	// Controller executes remote commands; nil disables remote control.
	Controller Controller
	// Jobs takes the messages of the topic of jobs, on the goroutine of commands; nil, or a nil Controller, for no jobs.
	Jobs func(message []byte)
	// Values keep what commands have set. With nil they are kept beside the event spool.
	Values *RemoteValues

	// Set by Open.
	run string // makes event ids unique over restarts
	outbox
	remoteControl
	discovery discovery
	stale     staleTopics
	conflict  nameConflict
}

// Check returns the error that Open would return, except for a spool that is in use. It opens nothing.
func (c *Client) Check() error {
	if err := (topic.Tree{Root: cmp.Or(c.Root, topic.DefaultRoot), Device: c.Device}).Check(); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	if strings.ContainsAny(c.DiscoveryPrefix, "+#\x00") {
		return fmt.Errorf("open mqtt: discovery prefix %q cannot start a topic (leave out + and #)", c.DiscoveryPrefix)
	}
	if err := c.Access.Check(); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	return nil
}

// Open checks the configuration and opens the spool. Messages may be published from here on.
func (c *Client) Open() error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Root = cmp.Or(c.Root, topic.DefaultRoot)
	c.ClientID = cmp.Or(c.ClientID, defaultClientID(c.Device))
	c.run = strconv.FormatInt(time.Now().UnixMicro(), 36)
	if err := c.open(c); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	c.setUp()
	c.discovery.load()
	if c.Controller != nil { // without remote control the client does not subscribe to its own topics
		c.conflict.announce()
	}
	c.Link.mu.Lock()
	c.opened = true
	c.Link.mu.Unlock()
	return nil
}

// setUp connects the parts of the client, whose link is open.
func (c *Client) setUp() {
	if c.Values == nil {
		c.Values = OpenRemoteValues(c.events.Directory, c.Logger)
	}
	c.outbox = outbox{
		topics: topic.Tree{Root: c.Root, Device: c.Device}, frigate: c.Frigate, deepStream: c.DeepStream,
		detectionsInterval: c.DetectionsInterval, countInterval: c.CountInterval,
		link: &c.Link, mailboxes: map[topicKey]*mailbox{},
	}
	c.remoteControl = remoteControl{
		outbox: &c.outbox, controller: c.Controller, changed: c.Changed, cameras: map[string]string{},
		RemoteValues: c.Values,
	}
	c.discovery = discovery{
		Discovery: homeassistant.Discovery{Prefix: c.DiscoveryPrefix, Tree: c.topics, Control: c.Controller != nil},
		outbox:    &c.outbox, path: c.statePath(announcedName),
	}
	c.discovery.setLimit(c.MaxPacket)
	c.stale = staleTopics{outbox: &c.outbox, announced: make(chan struct{}), checked: map[string]struct{}{}}
	c.conflict = nameConflict{outbox: &c.outbox, run: c.run}
}

// Close ends Run, waits for it, and writes the queued events to disk. Afterwards every event is delivered, on disk, or accounted as
// dropped; see spool.Spool.Close for the error. It is idempotent and safe on a client that was never opened.
func (c *Client) Close() error {
	if !c.isOpen() {
		return nil
	}
	c.close()
	c.running.Wait()
	c.Values.Close()
	c.discovery.close()
	return c.events.Close()
}

// Topics returns the client's topic tree. It is valid after Open.
func (c *Client) Topics() topic.Tree { return c.topics }

// defaultClientID returns a client id that is stable across restarts and differs between machines with the same device name.
func defaultClientID(device string) string {
	return fmt.Sprintf("edge-infer-%s-%s", strings.ToValidUTF8(device, "_"), machineID(device))
}

// Announce sets the device's cameras and entities. It publishes them to Home Assistant, QoS 1 and retained, and again whenever Home
// Assistant starts, unless DiscoveryPrefix is empty. Entities announced earlier, also by a previous process (a file beside the event spool
// lists them), are removed from Home Assistant. The retained topics of cameras, zones and lines that are not announced any more are
// cleared; nothing may be published to them afterwards. Counts without a value are published as 0.
func (c *Client) Announce(a *homeassistant.Announcement) error {
	c.discovery.mu.Lock()
	defer c.discovery.mu.Unlock()
	if err := c.discovery.publish(a); err != nil {
		return fmt.Errorf("announce device: %w", err)
	}
	c.clearRemoved(a.Cameras)
	c.publishInitial(a)
	c.prune(a.Cameras)
	return nil
}

// clearRemoved clears the retained topics of removed cameras, zones and lines, and closes their controls, all at once.
func (c *Client) clearRemoved(cameras []homeassistant.Camera) {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	stay := ownersOf(cameras)
	c.stale.announce(cameras, stay)
	c.outbox.keepOnly(stay)
	c.remoteControl.keepOnly(stay)
}

func (c *Client) availability() string { return c.topics.Available() }

func (c *Client) subscriptions() []string { return c.filters(c.Controller != nil) }

// filters returns the filters of commands and of other machines with the same name, if control is set, and of Home Assistant's birth
// message.
func (c *Client) filters(control bool) []string {
	var filters []string
	if control {
		filters = append(filters, c.remoteControl.filters()...)
		if c.Jobs != nil {
			filters = append(filters, c.topics.NextJob())
		}
	}
	if c.DiscoveryPrefix != "" {
		filters = append(filters, c.discovery.Birth())
	}
	return filters
}

// refusedFilter logs a filter that the broker refused.
func (c *Client) refusedFilter(filter string) {
	if c.DiscoveryPrefix != "" && filter == c.discovery.Birth() {
		c.Logger.Warn("mqtt subscription refused, entities may be missing after a start of Home Assistant "+
			"(check what the broker allows this client)", "filter", filter)
		return
	}
	c.Logger.Warn("mqtt subscription refused, remote control does not work (check what the broker allows this client)", "filter", filter)
}

// accompany maintains Frigate's availability topic while a connection lasts, and clears stale topics of earlier processes.
func (c *Client) accompany(ctx context.Context, to address.Address) {
	var background sync.WaitGroup
	background.Go(func() { c.stale.clear(ctx, to) })
	background.Go(func() { c.conflict.repeat(ctx.Done()) })
	if c.Frigate != "" {
		background.Go(func() { c.frigateAvailable(ctx, to, c.Frigate.Available()) })
	}
	background.Wait()
}

// receive handles Home Assistant's birth message, the messages of other machines with the same name, jobs, and commands.
func (c *Client) receive(ctx context.Context, broker string, m paho.Message) {
	switch {
	case c.DiscoveryPrefix != "" && m.Topic() == c.discovery.Birth():
		if string(m.Payload()) == "online" && !m.Retained() {
			c.renewDiscovery()
		}
	case m.Topic() == c.topics.Machine():
		if !m.Retained() {
			c.conflict.note(m.Payload())
		}
	case c.Jobs != nil && m.Topic() == c.topics.NextJob():
		c.Jobs(m.Payload())
	case c.Controller != nil:
		c.remoteControl.receive(ctx, broker, m)
	}
}

// Connection returns the state of the connection.
func (c *Client) Connection() Connection {
	connection := c.connectionState()
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	if other := c.conflict.current(time.Now()); other != nil {
		connection.Conflict = other.String()
	}
	return connection
}
