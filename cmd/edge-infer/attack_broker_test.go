package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// MQTT packets are encoded by hand, so that they can be malformed. The type is in the upper four bits of the first byte.
const (
	mqttConnect   = 0x10
	mqttPublish   = 0x30
	mqttSubscribe = 0x82
)

// mqttText is a string with its length before it.
func mqttText(text string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

// mqttPacket puts the first byte and the length before a body.
func mqttPacket(head byte, body []byte) []byte {
	packet := []byte{head}
	for left := len(body); ; {
		digit := byte(left & 127)
		left >>= 7
		if left > 0 {
			packet = append(packet, digit|128)
			continue
		}
		return append(append(packet, digit), body...)
	}
}

// mqttLogin is CONNECT with all fields that the flags announce.
func mqttLogin(level, flags byte, client, password string) []byte {
	body := append(mqttText("MQTT"), level, flags, 0, 60)
	properties := []byte(nil)
	if level == 5 {
		properties = []byte{0}
	}
	body = append(append(body, properties...), mqttText(client)...)
	if flags&0x04 != 0 { // a will
		body = append(append(body, properties...), mqttText("wills/"+client)...)
		body = append(body, mqttText("gone")...)
	}
	if flags&0x80 != 0 {
		body = append(body, mqttText(attackUser)...)
	}
	if flags&0x40 != 0 {
		body = append(body, mqttText(password)...)
	}
	return mqttPacket(mqttConnect, body)
}

// attackLogin sends what is no login: every combination of flags, other versions, wrong passwords, half packets and noise.
func (a *arena) attackLogin() {
	flags := byte(a.random.UintN(256))
	login := mqttLogin(choose[byte](a, 3, 4, 5), flags, fmt.Sprint("x", a.random.IntN(5000)), "wrong")
	switch a.random.IntN(5) {
	case 0:
		a.send(a.broker, login, false)
	case 1:
		a.send(a.broker, a.damaged(login), false)
	case 2:
		a.send(a.broker, login[:a.random.IntN(len(login))], true)
	case 3:
		a.send(a.broker, []byte{mqttConnect, 0xff, 0xff, 0xff, byte(a.random.UintN(256))}, true)
	case 4:
		a.send(a.broker, a.bytes(400), false)
	}
}

// attackSession logs in, with one of 2,000 sessions of which many stay, and sends packets of every type with every flag.
func (a *arena) attackSession() {
	level := choose[byte](a, 4, 5)
	flags := 0xc0 | choose[byte](a, 0, 2) | choose[byte](a, 0, 0x04, 0x0c, 0x24) // user, password; clean or not; wills
	text := mqttLogin(level, flags, fmt.Sprint("session", a.random.IntN(2000)), attackPassword)
	for range 1 + a.random.IntN(12) {
		topic := choose(a, "noise/a", "noise/"+strings.Repeat("b/", a.random.IntN(300)), "$SYS/x", "", "noise/#", "+/+", "$share/g/#", "\x00")
		body := mqttText(topic)
		number := []byte{byte(a.random.UintN(3)), byte(a.random.UintN(256))}
		properties := []byte(nil)
		if level == 5 {
			properties = choose(a, []byte{0}, []byte{3, 0x23, 0, 1}, a.bytes(8)) // a topic alias
		}
		var packet []byte
		switch a.random.IntN(4) {
		case 0: // any type with any flags
			packet = mqttPacket(byte(a.random.UintN(256)), append(number, a.bytes(40)...))
		case 1:
			head := mqttPublish | byte(a.random.UintN(16))
			if head&6 != 0 {
				body = append(body, number...)
			}
			packet = mqttPacket(head, append(append(body, properties...), a.bytes(3000)...))
		default:
			packet = mqttPacket(mqttSubscribe, append(append(append(number, properties...), body...), byte(a.random.UintN(4))))
		}
		if a.random.IntN(3) == 0 {
			packet = a.damaged(packet)
		}
		text = append(text, packet...)
	}
	a.send(a.broker, text, a.random.IntN(4) == 0)
}

// attackSlowSubscriber subscribes to everything, publishes and reads nothing.
func (a *arena) attackSlowSubscriber() {
	client := fmt.Sprint("slow", a.random.IntN(200))
	text := mqttLogin(4, 0xc0|choose[byte](a, 0, 2), client, attackPassword)
	text = append(text, mqttPacket(mqttSubscribe, append(append([]byte{0, 1}, mqttText("#")...), 1))...)
	for i := range 8 {
		head := mqttPublish | 2 | byte(a.random.UintN(2)) // QoS 1, retained or not
		body := append(mqttText(fmt.Sprintf("flood/%d", a.random.IntN(2000))), 0, byte(i+2))
		text = append(text, mqttPacket(head, append(body, make([]byte, a.random.IntN(32<<10))...))...)
	}
	a.send(a.broker, text, true)
}

// attackSmallPackets sends thousands of packets that cost more to handle than to send: pings, acknowledgements, subscriptions, empty
// messages.
func (a *arena) attackSmallPackets() {
	text := mqttLogin(4, 0xc2, fmt.Sprint("small", a.random.IntN(200)), attackPassword)
	packet := choose(a, []byte{0xc0, 0}, []byte{0x40, 2, 0, 1}, mqttPacket(mqttPublish, mqttText("a")),
		mqttPacket(mqttSubscribe, append(append([]byte{0, 1}, mqttText("+/#")...), 0)))
	a.send(a.broker, append(text, bytes.Repeat(packet, 20_000)...), true)
}

// attackCommands floods the topics of the remote control of a camera that is there for it, with right and wrong values.
func (a *arena) attackCommands() {
	text := mqttLogin(4, 0xc2, fmt.Sprint("commander", a.random.IntN(50)), attackPassword)
	cameras := []string{"bad/", "bad/", "none/", ""}
	settings := []string{"detect", "threshold", "interval", "labels", "snapshot", "reload"}
	values := []string{"ON", "OFF", "0.5", "NaN", "-1", "1e999", "3", "99999999999999999999", "*", "nut,bolt", "unicorn", ""}
	for range 40 {
		topic := "edge-infer/attack/" + choose(a, cameras...) + choose(a, settings...) + "/set"
		value := choose(a, append(values, string(a.bytes(200)))...)
		text = append(text, mqttPacket(mqttPublish, append(mqttText(topic), value...))...)
	}
	a.send(a.broker, text, false)
	time.Sleep(20 * attackPause)
}
