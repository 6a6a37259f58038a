package mqtt

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// errNotMQTT5 is returned for brokers without MQTT 5, about which nothing is known.
var errNotMQTT5 = errors.New("the broker does not speak MQTT 5")

// permissionQuery finds out which operations a broker denies to a client. An MQTT 3.1.1 broker silently discards denied messages, and some
// grant subscriptions that never deliver; MQTT 5 reports both.
type permissionQuery struct {
	ClientID, User, Password string

	Filters []string // subscriptions to check
	Publish string   // topic of an empty message to publish
	// Echo is a topic matching the first filter; an empty message published there must come back. It is skipped if empty or if the client
	// may not publish there.
	Echo string
	// EchoTimeout bounds how long the message may take to come back.
	EchoTimeout time.Duration
}

// permissionCheck is a running permissionQuery.
type permissionCheck struct {
	*permissionQuery
	conn   net.Conn
	reader *bufio.Reader
	echoed bool
}

// run performs the check over a fresh connection, which it does not close, and returns a text for each denied operation. It sets the
// connection's deadlines.
func (q *permissionQuery) run(conn net.Conn, limit time.Duration) (refused []string, err error) {
	c := &permissionCheck{permissionQuery: q, conn: conn, reader: bufio.NewReader(conn)}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	if err := c.login(); err != nil {
		return nil, err
	}
	granted, refused, err := c.subscribe()
	if err != nil {
		return nil, err
	}
	allowed, err := c.publish(1, q.Publish)
	if err != nil {
		return nil, err
	}
	if !allowed {
		refused = append(refused, fmt.Sprintf("it refuses messages to %s", q.Publish))
	}
	if granted && q.Echo != "" {
		if allowed, err = c.publish(2, q.Echo); err != nil {
			return nil, err
		}
		if allowed && !c.echoReceived() {
			refused = append(refused, fmt.Sprintf("it grants %s, and passes on nothing under it", q.Filters[0]))
		}
	}
	_ = c.send(newMQTT5Packet(packets.Disconnect).DisconnectEncode) // everything is known
	return refused, nil
}

// failureCode is the lowest reason code of a refusal in MQTT 5 and the SUBACK return code "failure" in MQTT 3.1.1 (section 3.9.3).
const failureCode = 0x80

func (c *permissionCheck) login() error {
	in := newMQTT5Packet(packets.Connect)
	in.Connect = packets.ConnectParams{
		ProtocolName: []byte("MQTT"), Clean: true, Keepalive: 60, ClientIdentifier: c.ClientID,
		UsernameFlag: c.User != "", Username: []byte(c.User), PasswordFlag: c.Password != "", Password: []byte(c.Password),
	}
	if err := c.send(in.ConnectEncode); err != nil {
		return err
	}
	answer, err := readMQTT5Packet(c.reader) // that of MQTT 3.1.1 has no properties, which is an error
	if err != nil || answer.FixedHeader.Type != packets.Connack || answer.ReasonCode != 0 {
		return errors.Join(errNotMQTT5, err)
	}
	return nil
}

// subscribe subscribes to the filters and reports whether the first one is granted.
func (c *permissionCheck) subscribe() (granted bool, refused []string, err error) {
	if len(c.Filters) == 0 {
		return false, nil, nil
	}
	question := newMQTT5Packet(packets.Subscribe)
	question.FixedHeader.Qos, question.PacketID = qos1, 1
	for _, filter := range c.Filters {
		question.Filters = append(question.Filters, packets.Subscription{Filter: filter, Qos: qos1})
	}
	if err := c.send(question.SubscribeEncode); err != nil {
		return false, nil, err
	}
	answer, err := c.await(packets.Suback, 1)
	if err != nil {
		return false, nil, err
	}
	if len(answer.ReasonCodes) != len(c.Filters) {
		return false, nil, errMalformedPacket
	}
	for i, reason := range answer.ReasonCodes {
		if reason >= failureCode {
			refused = append(refused, fmt.Sprintf("it refuses the subscription to %s", c.Filters[i]))
		}
	}
	return answer.ReasonCodes[0] < failureCode, refused, nil
}

// publish sends an empty, non-retained message and reports whether the broker accepts it.
func (c *permissionCheck) publish(number uint16, topic string) (allowed bool, err error) {
	message := newMQTT5Packet(packets.Publish)
	message.FixedHeader.Qos, message.PacketID, message.TopicName = qos1, number, topic
	if err := c.send(message.PublishEncode); err != nil {
		return false, err
	}
	answer, err := c.await(packets.Puback, number)
	return err == nil && answer.ReasonCode < failureCode, err
}

// await reads packets up to the acknowledgement of this type and packet identifier.
func (c *permissionCheck) await(wanted byte, number uint16) (*packets.Packet, error) {
	for {
		p, err := readMQTT5Packet(c.reader)
		if err != nil {
			return nil, err
		}
		switch kind := p.FixedHeader.Type; {
		case kind == wanted && p.PacketID == number:
			return p, nil
		case kind == packets.Disconnect:
			return nil, errors.New("the broker ends the connection")
		}
		c.noteEcho(p)
	}
}

// noteEcho records whether a received packet is the echo.
func (c *permissionCheck) noteEcho(p *packets.Packet) {
	if p.FixedHeader.Type == packets.Publish && p.TopicName == c.Echo {
		c.echoed = true
	}
}

// echoReceived waits for the echo and reports whether it arrived.
func (c *permissionCheck) echoReceived() bool {
	if c.conn.SetReadDeadline(time.Now().Add(c.EchoTimeout)) != nil {
		return true // not known
	}
	for !c.echoed {
		p, err := readMQTT5Packet(c.reader)
		if err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
		c.noteEcho(p)
	}
	return true
}
