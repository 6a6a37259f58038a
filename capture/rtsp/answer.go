package rtsp

import (
	"strconv"
	"strings"

	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/sdpunmarshaler"
)

// mend changes a camera's answer to a request into one that the library accepts, where other clients accept it as it is.
func mend(request base.Method, answer *base.Response) {
	if answer.StatusCode != base.StatusOK {
		return
	}
	switch request {
	case base.Describe:
		answer.Body = videoDescription(answer.Body)
		answer.Header["Content-Type"] = base.HeaderValue{"application/sdp"}
		at := answer.Header["Content-Base"]
		if len(at) == 1 && !strings.HasPrefix(at[0], "/") {
			_, err := base.ParseURL(at[0])
			if err != nil { // the request's URL is used
				delete(answer.Header, "Content-Base")
			}
		}
	case base.Setup:
		transport := answer.Header["Transport"]
		if len(transport) == 1 && strings.Contains(transport[0], "TCP") && !strings.Contains(transport[0], "interleaved=") {
			transport[0] += ";interleaved=0-1" // the channels that were requested
		}
	}
}

// videoDescription returns an SDP with nothing but the first video of a camera's, in its first format. Cameras describe audio, metadata and
// owners in ways that other clients ignore and the library refuses. It returns an SDP without video, or what is none, as it is.
func videoDescription(sdp []byte) []byte {
	session, videos := sections(string(sdp))
	video := firstVideo(videos)
	if video == nil {
		return sdp
	}
	format := payloadType(video[0])
	if format == "" {
		return sdp
	}
	profile := "RTP/AVP"
	if strings.Contains(video[0], "/SAVP") {
		profile = "RTP/SAVP"
	}
	lines := []string{"v=0", "o=- 0 0 IN IP4 127.0.0.1", "s= ", "t=0 0"}
	for _, line := range session {
		absolute := strings.HasPrefix(line, "a=control:rtsp://") || strings.HasPrefix(line, "a=control:rtsps://")
		if absolute || strings.HasPrefix(line, "a=key-mgmt:") {
			lines = append(lines, line)
		}
	}
	lines = append(lines, "m=video 0 "+profile+" "+format)
	for _, line := range video {
		for _, wanted := range []string{"a=rtpmap:", "a=fmtp:", "a=control:", "a=key-mgmt:"} {
			if strings.HasPrefix(line, wanted) {
				lines = append(lines, line)
			}
		}
	}
	made := join(lines)
	if parses(made) {
		return made
	}
	for i, line := range lines { // parameter sets may come with the key frames, and FFmpeg does not verify these
		if strings.HasPrefix(line, "a=fmtp:") {
			lines[i] = withoutSets(line)
		}
	}
	return join(lines)
}

func join(lines []string) []byte { return []byte(strings.Join(lines, "\r\n") + "\r\n") }

// sections returns the lines before the first media, and those of each video.
func sections(sdp string) (session []string, videos [][]string) {
	inVideo, inSession := false, true
	for line := range strings.Lines(sdp) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "m=") {
			inSession = false
			inVideo = strings.HasPrefix(line, "m=video ")
			if inVideo {
				videos = append(videos, nil)
			}
		}
		switch {
		case inSession:
			session = append(session, line)
		case inVideo:
			last := len(videos) - 1
			videos[last] = append(videos[last], line)
		}
	}
	return session, videos
}

// firstVideo returns the first video that the camera sends; one that is marked otherwise if there is no other.
func firstVideo(videos [][]string) []string {
	for _, video := range videos {
		back := false
		for _, line := range video {
			back = back || line == "a=sendonly"
		}
		if !back {
			return video
		}
	}
	if len(videos) > 0 {
		return videos[0]
	}
	return nil
}

// payloadType returns the first format of a line such as "m=video 0 RTP/AVP 96 97", "" if it has none.
func payloadType(media string) string {
	fields := strings.Fields(media)
	for _, field := range fields[min(3, len(fields)):] {
		_, err := strconv.ParseUint(field, 10, 7)
		if err == nil {
			return field
		}
	}
	return ""
}

// parses reports whether the library accepts an SDP.
func parses(sdp []byte) bool {
	parsed, err := sdpunmarshaler.Unmarshal(sdp)
	if err != nil {
		return false
	}
	var session description.Session
	return session.Unmarshal2(parsed) == nil
}

// withoutSets returns the description of a format without its parameter sets.
func withoutSets(line string) string {
	head, parameters, _ := strings.Cut(line, " ")
	var kept []string
	for parameter := range strings.SplitSeq(parameters, ";") {
		parameter = strings.TrimSpace(parameter)
		if !strings.HasPrefix(parameter, "sprop-") {
			kept = append(kept, parameter)
		}
	}
	return head + " " + strings.Join(kept, ";")
}
