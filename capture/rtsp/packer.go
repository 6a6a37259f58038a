package rtsp

import (
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph264"
	"github.com/bluenviron/gortsplib/v5/pkg/format/rtph265"
	"github.com/pion/rtp"
)

// maxPacket is the size in bytes of the largest RTP packet that the library sends.
const maxPacket = 1472

// packer splits the packets of a video into smaller ones.
type packer struct {
	units  *nalUnits
	newest uint32 // timestamp of the packet before
	encode func(units [][]byte) ([]*rtp.Packet, error)
}

// newPacker returns a packer whose first packet has the given sequence number, nil for a codec that cannot be packed anew.
func newPacker(video format.Format, sequence uint16) *packer {
	switch f := video.(type) {
	case *format.H264:
		encoder := rtph264.Encoder{PayloadType: f.PayloadTyp, InitialSequenceNumber: &sequence, PacketizationMode: 1}
		return startPacker(restarting(f.CreateDecoder), encoder.Init(), encoder.Encode)
	case *format.H265:
		encoder := rtph265.Encoder{PayloadType: f.PayloadTyp, InitialSequenceNumber: &sequence}
		return startPacker(restarting(f.CreateDecoder), encoder.Init(), encoder.Encode)
	}
	return nil
}

func startPacker(restart func() (nalDecoder, error), failed error, encode func([][]byte) ([]*rtp.Packet, error)) *packer {
	decode, err := restart()
	if err != nil || failed != nil {
		return nil
	}
	return &packer{units: &nalUnits{restart: restart, decode: decode}, encode: encode}
}

// pack returns the packets of the access unit that the packet completes.
func (p *packer) pack(packet *rtp.Packet) []*rtp.Packet {
	timestamp := packet.Timestamp
	if !packet.Marker { // see Stream.packet
		timestamp = p.newest
	}
	p.newest = packet.Timestamp
	units, err := p.units.units(packet)
	if err != nil { // more packets are needed, or some are missing
		return nil
	}
	units = withoutEmpty(units)
	if len(units) == 0 {
		return nil
	}
	packets, err := p.encode(units)
	if err != nil {
		return nil
	}
	for _, made := range packets {
		made.Timestamp = timestamp
	}
	return packets
}
