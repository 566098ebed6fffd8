use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Public,
    Private,
    Loopback,
    /// Clouds serve instance metadata here, with credentials.
    LinkLocal,
    /// Other addresses at which clouds serve instance metadata.
    Metadata,
    /// Linux treats it as this machine.
    Unspecified,
    Multicast,
    /// Reserved by IANA, but used in some networks.
    Reserved,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Unspecified => "unspecified",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        }
    }

    /// Returns an address's kind. For an IPv6 address that leads to an IPv4 address, the latter counts.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

/// Azure, Alibaba and Oracle.
const METADATA_V4: [[u8; 4]; 3] = [[168, 63, 129, 16], [100, 100, 100, 200], [192, 0, 0, 192]];
/// AWS and Google.
const METADATA_V6: [[u16; 8]; 2] = [
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
    [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
];

fn of_v4(address: Ipv4Addr) -> Kind {
    let octets = address.octets();
    if METADATA_V4.contains(&octets) {
        return Kind::Metadata;
    }
    match octets {
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [169, 254, ..] => Kind::LinkLocal,
        // The fourth is shared address space (RFC 6598).
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Kind::Private,
        [224..=239, ..] => Kind::Multicast,
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Kind::Reserved,
        _ => Kind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Kind {
    let parts = address.segments();
    if METADATA_V6.contains(&parts) {
        return Kind::Metadata;
    }
    let v4 =
        |high: u16, low: u16| of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Loopback,
        // Mapped, translated (RFC 2765), compatible (deprecated), and NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        // Local NAT64 (RFC 8215), which hides the IPv4 address.
        [0x64, 0xff9b, 1, ..] => Kind::Private,
        // 6to4.
        [0x2002, high, low, ..] => v4(high, low),
        [0xfe80..=0xfebf, ..] => Kind::LinkLocal,
        // The second was site-local.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Kind::Private,
        [0xff00..=0xffff, ..] => Kind::Multicast,
        // The first range contains Teredo. The others are for documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Kind::Reserved,
        // ISATAP (RFC 5214).
        [.., 0 | 0x200, 0x5efe, high, low] => v4(high, low),
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Reserved,
    }
}
