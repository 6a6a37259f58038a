// Package payload writes the JSON payloads of the topics. Those of frames and events are appended without reflection and, with room in the
// buffer, without allocation.
// The web page and the infer command write detections with it too.
package payload

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Version is the "v" of every JSON payload; it changes when a field changes its meaning.
const Version = `{"v":1,`

// AppendDecimal writes v with at most three decimals and no trailing zeros. JSON has no word for NaN and infinity; they become 0.
func AppendDecimal(buf []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(buf, '0')
	}
	if math.Abs(v) >= 1e15 {
		return strconv.AppendFloat(buf, v, 'f', 0, 64)
	}
	scaled := int64(math.Abs(v)*1000 + 0.5)
	if v < 0 && scaled != 0 {
		buf = append(buf, '-')
	}
	buf = strconv.AppendInt(buf, scaled/1000, 10)
	rest := byte(scaled % 1000 / 10)
	last := byte(scaled % 10)
	switch {
	case last != 0:
		return append(buf, '.', '0'+rest/10, '0'+rest%10, '0'+last)
	case rest%10 != 0:
		return append(buf, '.', '0'+rest/10, '0'+rest%10)
	case rest != 0:
		return append(buf, '.', '0'+rest/10)
	}
	return buf
}

// appendFloat32 writes a float32 as encoding/json does: with the fewest digits that give the same float32.
func appendFloat32(buf []byte, v float64) []byte {
	text, err := json.Marshal(float32(v))
	if err != nil { // NaN and infinity
		return append(buf, '0')
	}
	return append(buf, text...)
}

// AppendMilliseconds writes a duration as milliseconds.
func AppendMilliseconds(buf []byte, d time.Duration) []byte {
	return AppendDecimal(buf, float64(d)/float64(time.Millisecond))
}

// appendTime writes RFC 3339 in UTC with microseconds, quotes included. It is the layout "2006-01-02T15:04:05.000000Z" without the cost of
// reading a layout.
func appendTime(buf []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		year = 0
	}
	hour, minute, second := t.Clock()
	buf = append(buf, '"')
	buf = appendDigits(buf, year, 1000)
	buf = append(buf, '-')
	buf = appendDigits(buf, int(month), 10)
	buf = append(buf, '-')
	buf = appendDigits(buf, day, 10)
	buf = append(buf, 'T')
	buf = appendDigits(buf, hour, 10)
	buf = append(buf, ':')
	buf = appendDigits(buf, minute, 10)
	buf = append(buf, ':')
	buf = appendDigits(buf, second, 10)
	buf = append(buf, '.')
	buf = appendDigits(buf, t.Nanosecond()/1000, 100_000)
	return append(buf, 'Z', '"')
}

// clockFloor is before any time that a set clock can show: a machine without a battery clock starts in 1970, or where it was last.
const clockFloor = 1_767_225_600 // Unix seconds of 1 January 2026

// appendTimeField writes the field time, and clock_set if the clock was not set.
func appendTimeField(buf []byte, t time.Time) []byte {
	buf = appendTime(append(buf, `,"time":`...), t)
	if t.Unix() < clockFloor {
		buf = append(buf, `,"clock_set":false`...)
	}
	return buf
}

// appendDigits writes n with leading zeros; unit is the weight of the first digit.
func appendDigits(buf []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		buf = append(buf, byte('0'+n/unit%10))
	}
	return buf
}

// AppendString writes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(buf []byte, s string) []byte {
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				buf = append(buf, s[start:i]...)
				buf = append(buf, `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		buf = append(buf, s[start:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\t':
			buf = append(buf, '\\', 't')
		case '\r':
			buf = append(buf, '\\', 'r')
		default:
			const hex = "0123456789abcdef"
			buf = append(buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	buf = append(buf, s[start:]...)
	return append(buf, '"')
}
