package outputs

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
)

// openBroker opens the embedded broker, if configured, once. It returns the addresses of the brokers to connect to.
func (o *Outputs) openBroker() (brokers []string, err error) {
	m := &o.Settings.MQTT
	if m.URL != config.Embedded {
		return m.Brokers(), nil
	}
	if o.broker.Load() == nil {
		opened, err := mqttconfig.Open(m, o.Logger)
		if err != nil {
			return nil, err
		}
		o.broker.Store(opened)
	}
	return []string{o.broker.Load().URL()}, nil
}

// openClient makes the client ready, unless MQTT is off.
func (o *Outputs) openClient(controller mqtt.Controller) error {
	m := &o.Settings.MQTT
	brokers, err := o.openBroker()
	if err != nil || len(brokers) == 0 {
		return err
	}
	client := mqttconfig.NewClient(o.Settings, brokers)
	client.Logger = o.Logger
	client.Values = o.commands.values
	client.Acknowledged = func(took time.Duration) { o.Stages.Record(stage.Acknowledgement, took) }
	if o.store != nil {
		client.BeforeEvent = o.store.Settle
	}
	client.Access = o.access(m)
	if m.Discovery {
		client.DiscoveryPrefix = mqttconfig.DiscoveryPrefix
	}
	if m.Control {
		client.Controller = controller
		client.Changed = o.changed
		client.Jobs = o.Jobs.Receive
	}
	if err := client.Open(); err != nil {
		return err
	}
	if b := o.broker.Load(); b != nil {
		b.Trust(client.Identifiers()...)
	}
	o.client = client
	o.commands.client = client
	o.Jobs.client = client
	return nil
}

// access returns how the client logs in: to the embedded broker if that is open, else as configured.
func (o *Outputs) access(m *config.MQTT) mqtt.Access {
	b := o.broker.Load()
	if b == nil {
		return mqttconfig.Access(m, m.Brokers())
	}
	access := mqttconfig.Access(m, []string{b.URL()})
	access.TLS.Insecure = true // it is this very process
	return access
}

// mqttOutput is MQTT as reloads see it: the client, which goes on with its queues at another broker or with another login, and the embedded
// broker.
type mqttOutput struct{ of *Outputs }

// Compare implements output. These settings take a restart:
//   - url from or to off, because the frame loop publishes the counts that change: a new client would not know the others;
//   - count_interval, frigate, deepstream, deepstream_schema, discovery and control, which name the topics of messages that are queued or
//     retained already;
//   - spool, because the queue of events is in that directory.
func (m mqttOutput) Compare(change *site.OutputChange) site.Change {
	was, next := change.Was.MQTT, change.Next.MQTT
	off := was.URL == config.Off
	if (next.URL == config.Off) != off {
		return unlike("mqtt", true, site.Restart, "mqtt.url from or to off")
	}
	if reason := fixedDifference(&was, &next); reason != "" && !off {
		return unlike("mqtt", true, site.Restart, reason)
	}
	if !off && renewed(m, change) {
		return unlike("mqtt", true, site.Reopen, "")
	}
	if !reflect.DeepEqual(mqttconfig.Access(&was, nil), mqttconfig.Access(&next, nil)) || was.URL != next.URL || was.Listen != next.Listen {
		return unlike("mqtt", true, site.Reopen, "")
	}
	return unlike("mqtt", !reflect.DeepEqual(was, next), site.Tune, "")
}

// fixedDifference names a setting that differs and that a running client cannot take, empty for none.
func fixedDifference(was, next *config.MQTT) string {
	for _, setting := range []struct {
		key     string
		differs bool
	}{
		{"mqtt.count_interval", was.CountInterval != next.CountInterval},
		{"mqtt.frigate", was.Frigate != next.Frigate},
		{"mqtt.deepstream", was.DeepStream != next.DeepStream},
		{"mqtt.deepstream_schema", was.DeepStreamSchema != next.DeepStreamSchema},
		{"mqtt.discovery", was.Discovery != next.Discovery},
		{"mqtt.control", was.Control != next.Control},
		{"mqtt.spool", was.Spool != next.Spool},
	} {
		if setting.differs {
			return setting.key
		}
	}
	return ""
}

// Files implements output. The client reads them for each connection: a new one is made so that it is known at once whether they are valid.
func (m mqttOutput) Files(settings *site.Outputs) []string {
	all := &settings.MQTT
	return []string{all.PasswordFile, all.CA, all.Certificate, all.Key}
}

// Reload implements output.
func (m mqttOutput) Reload(ctx context.Context, change *site.OutputChange) error {
	if m.of.client == nil || m.Compare(change).Action < site.Reopen {
		return nil
	}
	if err := m.reconnect(ctx, &change.Was.MQTT, &change.Next.MQTT); err != nil {
		return err
	}
	m.of.certificates.set(brokerCertificate, change.Next.MQTT.Certificate)
	m.of.certificates.set(brokerAuthority, change.Next.MQTT.CA)
	m.of.Logger.Info("mqtt connects with changed settings", "broker", m.of.describeBroker(&change.Next.MQTT))
	return nil
}

// reconnect moves the client to the broker of the next settings. An embedded broker at another address is opened before the connection
// ends; one at the same address after that, and if it cannot be, the one before is opened again.
func (m mqttOutput) reconnect(ctx context.Context, was, next *config.MQTT) error {
	o := m.of
	before := o.broker.Load()
	var opened *embedded.Broker
	var err error
	same := before != nil && was.Listen == next.Listen
	switch {
	case next.URL != config.Embedded:
		err = checkAccess(next)
	case same:
		err = mqttconfig.New(next, next.Listen, o.Logger).Check()
	default:
		opened, err = m.open(next)
	}
	if err != nil {
		return err
	}
	var failure error
	moved := false
	err = o.client.Reconnect(ctx, func() mqtt.Access {
		moved = true
		if before != nil {
			m.close(before)
		}
		if next.URL == config.Embedded && same {
			if opened, err = m.open(next); err != nil {
				failure = err
				opened, err = m.open(was)
				failure = errors.Join(failure, err)
				next = was
			}
		}
		o.broker.Store(opened)
		return o.access(next)
	})
	if err != nil && !moved && opened != nil {
		m.close(opened)
	}
	return errors.Join(err, failure)
}

// close closes an embedded broker that nothing uses any more.
func (m mqttOutput) close(b *embedded.Broker) {
	if err := b.Close(); err != nil {
		m.of.Logger.Warn("embedded broker", "error", err)
	}
}

// open opens an embedded broker that trusts the client.
func (m mqttOutput) open(settings *config.MQTT) (*embedded.Broker, error) {
	opened, err := mqttconfig.Open(settings, m.of.Logger)
	if err != nil {
		return nil, err
	}
	opened.Trust(m.of.client.Identifiers()...)
	return opened, nil
}

func checkAccess(m *config.MQTT) error {
	access := mqttconfig.Access(m, m.Brokers())
	return access.Check()
}
