"""The string formats that are enforced, each as a pattern for the whole text.

Decision: `format` is asserted, not only noted as draft 2020-12 allows, since whoever writes
“date” wants a date; a format that is not listed here is refused.
"""


def _leap_seconds() -> str:
    """Return the last second of a UTC day that has 61, as clocks with each offset show it.

    Offsets are whole quarters of an hour, as all that are in use.
    """
    shown = {"(?:[Zz]|[+-]00:00)": "23:59"}
    for quarters in range(1, 24 * 4):
        offset = f"{quarters // 4:02}:{quarters % 4 * 15:02}"
        east, west = 15 * quarters - 1, 24 * 60 - 1 - 15 * quarters
        shown[rf"\+{offset}"] = f"{east // 60:02}:{east % 60:02}"
        shown[f"-{offset}"] = f"{west // 60:02}:{west % 60:02}"
    return "|".join(rf"{clock}:60(?:\.[0-9]+)?{offset}" for offset, clock in shown.items())


_MONTH_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_YEAR = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = rf"(?:[0-9]{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_OFFSET = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_TIME = rf"(?:{_CLOCK}{_OFFSET}|{_leap_seconds()})"
_TIME_PART = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DATE_PART = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(
    [
        rf"(?:{_H16}:){{6}}{_LS32}",
        rf"::(?:{_H16}:){{5}}{_LS32}",
        *(rf"(?:(?:{_H16}:){{0,{n}}}{_H16})?::(?:{_H16}:){{{4 - n}}}{_LS32}" for n in range(5)),
        rf"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        rf"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    ]
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_MAIL_HOST = rf"\[(?:{_IPV4}|IPv6:(?:{_IPV6}))\]"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_HOST_LABEL = (  # 63 characters, and no hyphens third and fourth, which is a label in Punycode
    r"[A-Za-z0-9](?:[A-Za-z0-9]?|[A-Za-z0-9-](?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,59}[A-Za-z0-9])?"
    r"|-[A-Za-z0-9](?:[A-Za-z0-9-]{0,58}[A-Za-z0-9])?))"
)
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_NAME_CHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
_HOST = rf"(?:\[(?:{_IPV6}|v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]|{_NAME_CHAR}*)"
_AUTHORITY = rf"//(?:(?:{_NAME_CHAR}|:)*@)?{_HOST}(?::[0-9]*)?(?:/{_PCHAR}*)*"
_ROOTED = rf"/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|{_ROOTED}|(?:{_PCHAR}+(?:/{_PCHAR}*)*)?){_TAIL}"
_SEGMENT = r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})"
_RELATIVE = rf"(?:{_AUTHORITY}|{_ROOTED}|(?:{_SEGMENT}+(?:/{_PCHAR}*)*)?){_TAIL}"

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": rf"P(?:{_DATE_PART}(?:{_TIME_PART})?|{_TIME_PART}|[0-9]+W)",
    "uuid": r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "hostname": rf"{_HOST_LABEL}(?:\.{_HOST_LABEL})*",
    "uri": _URI,
    "uri-reference": rf"(?:{_URI}|{_RELATIVE})",
    "email": rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_LABEL}(?:\.{_LABEL})*|{_MAIL_HOST})",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
}
LONGEST = {"hostname": 253}  # characters of the whole text
