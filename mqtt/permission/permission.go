// Package permission finds out what a broker does not let a client do. In MQTT 3.1.1 a broker takes messages that it does not allow and
// throws them away, and some grant subscriptions under which nothing ever comes. In MQTT 5 it says so, which makes both be found out.
package permission

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// ErrVersion is the answer of a broker that does not speak MQTT 5: nothing is known then.
var ErrVersion = errors.New("the broker does not speak MQTT 5")

// Question is what a client wants to do.
type Question struct {
	ClientID, User, Password string

	Filters []string // that it subscribes to
	Publish string   // topic of an empty message that it sends
	// Echo is the topic, under the first of the filters, of an empty message that has to come back; empty for none. Where the client may
	// not send it either, nothing is known of what comes.
	Echo string
	// Patience is how long the message may take to come back.
	Patience time.Duration
}

// conversation is a question under way.
type conversation struct {
	*Question
	conn   net.Conn
	reader *bufio.Reader
	echoed bool
}

// Ask asks over a fresh connection, which it does not close, and says what is refused, a text for each; none where all is allowed. The
// connection's deadlines are Ask's.
func (q *Question) Ask(conn net.Conn, limit time.Duration) (refused []string, err error) {
	c := &conversation{Question: q, conn: conn, reader: bufio.NewReader(conn)}
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
		if allowed && !c.comesBack() {
			refused = append(refused, fmt.Sprintf("it grants %s, and passes on nothing under it", q.Filters[0]))
		}
	}
	_, _ = conn.Write(newPacket(disconnect, nil)) // everything is known
	return refused, nil
}

// failure is the lowest reason code that refuses.
const failure = 0x80

func (c *conversation) login() error {
	const clean, user, password = 0x02, 0x80, 0x40
	flags := byte(clean)
	if c.User != "" {
		flags |= user
	}
	if c.Password != "" {
		flags |= password
	}
	body := append(appendText(nil, "MQTT"), 5, flags, 0, 60, 0) // version, flags, seconds of keep-alive, no properties
	body = appendText(body, c.ClientID)
	if c.User != "" {
		body = appendText(body, c.User)
	}
	if c.Password != "" {
		body = appendText(body, c.Password)
	}
	if _, err := c.conn.Write(newPacket(connect, body)); err != nil {
		return err
	}
	kind, answer, err := readPacket(c.reader)
	if err != nil || kind != connack || len(answer) < 3 || answer[1] != 0 { // that of MQTT 3.1.1 has 2 bytes
		return errors.Join(ErrVersion, err)
	}
	return nil
}

// subscribe asks for the filters, and reports whether the first is granted.
func (c *conversation) subscribe() (granted bool, refused []string, err error) {
	body := []byte{0, 1, 0} // number, no properties
	for _, filter := range c.Filters {
		body = append(appendText(body, filter), qos1)
	}
	if len(c.Filters) == 0 {
		return false, nil, nil
	}
	if _, err := c.conn.Write(newPacket(subscribe, body)); err != nil {
		return false, nil, err
	}
	answer, err := c.await(suback, 1)
	if err != nil {
		return false, nil, err
	}
	if answer, err = afterProperties(answer); err != nil || len(answer) != len(c.Filters) {
		return false, nil, errors.Join(errMalformed, err)
	}
	for i, reason := range answer {
		if reason >= failure {
			refused = append(refused, fmt.Sprintf("it refuses the subscription to %s", c.Filters[i]))
		}
	}
	return answer[0] < failure, refused, nil
}

// publish sends an empty message that is not retained, and reports whether the broker takes it.
func (c *conversation) publish(number byte, topic string) (allowed bool, err error) {
	body := append(appendText(nil, topic), 0, number, 0) // no properties
	if _, err := c.conn.Write(newPacket(publish|qos1<<1, body)); err != nil {
		return false, err
	}
	answer, err := c.await(puback, uint16(number))
	return len(answer) == 0 || answer[0] < failure, err // without a reason it is success
}

// await reads up to the answer of that type and number, and gives what stands behind the number.
func (c *conversation) await(wanted byte, number uint16) ([]byte, error) {
	for {
		kind, body, err := readPacket(c.reader)
		switch {
		case err != nil:
			return nil, err
		case kind&0xF0 == publish:
			c.hear(body)
		case kind == wanted:
			of, rest, err := cutNumber(body)
			if err != nil || of == number {
				return rest, err
			}
		case kind == disconnect:
			return nil, errors.New("the broker ends the connection")
		}
	}
}

// hear looks whether a message that comes in is the one that was sent.
func (c *conversation) hear(body []byte) {
	size, rest, err := cutNumber(body)
	if err == nil && int(size) <= len(rest) && string(rest[:size]) == c.Echo {
		c.echoed = true
	}
}

// comesBack waits for the message that was sent.
func (c *conversation) comesBack() bool {
	if c.conn.SetReadDeadline(time.Now().Add(c.Patience)) != nil {
		return true // not known
	}
	for !c.echoed {
		kind, body, err := readPacket(c.reader)
		if err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
		if kind&0xF0 == publish {
			c.hear(body)
		}
	}
	return true
}
