"""Month names and zone names that feeds and pages write. Facts only; `dates` reads them.

Zone names are those of RFC 822 and those that mean one offset wherever they are used. Ambiguous ones are listed so
that they are refused instead of being taken for UTC.
"""

from __future__ import annotations

# One line per language: twelve names, then short forms that are not simply the first three letters.
_NAMES = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti september oktober november december
januar februar mars april mai juni juli august september oktober november desember
januar februar marts april maj juni juli august september oktober november december
styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
leden únor březen duben květen červen červenec srpen září říjen listopad prosinec
ledna února března dubna května června července srpna září října listopadu prosince
"""
_SHORT = {
    "jan": 1,
    "jän": 1,
    "jänner": 1,
    "janv": 1,
    "ene": 1,
    "gen": 1,
    "feb": 2,
    "febr": 2,
    "fev": 2,
    "fév": 2,
    "févr": 2,
    "mar": 3,
    "mär": 3,
    "mrz": 3,
    "maerz": 3,
    "mrt": 3,
    "apr": 4,
    "avr": 4,
    "abr": 4,
    "jun": 6,
    "juin": 6,
    "giu": 6,
    "mag": 5,
    "jul": 7,
    "juil": 7,
    "lug": 7,
    "aug": 8,
    "aoû": 8,
    "ago": 8,
    "sep": 9,
    "sept": 9,
    "set": 9,
    "oct": 10,
    "okt": 10,
    "ott": 10,
    "out": 10,
    "nov": 11,
    "dec": 12,
    "dez": 12,
    "déc": 12,
    "dic": 12,
    "des": 12,
}


def _table() -> dict[str, int]:
    found = dict(_SHORT)
    clash: set[str] = set()
    for line in _NAMES.strip().splitlines():
        for number, name in enumerate(line.split(), 1):
            if found.setdefault(name, number) != number:
                clash.add(name)
    # Czech and Polish "listopad" are October's and November's neighbours: one name, two months, so neither
    return {name: number for name, number in found.items() if name not in clash}


#: Lower-case name to month number.
MONTHS = _table()

#: Minutes east of UTC.
ZONES = {
    "z": 0,
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "wet": 0,
    "west": 60,
    "cet": 60,
    "mez": 60,
    "cest": 120,
    "mesz": 120,
    "met": 60,
    "mest": 120,
    "eet": 120,
    "eest": 180,
    "msk": 180,
    "est": -300,
    "edt": -240,
    "cdt": -300,
    "cst": -360,
    "mst": -420,
    "mdt": -360,
    "pst": -480,
    "pdt": -420,
    "akst": -540,
    "akdt": -480,
    "hst": -600,
    "nst": -210,
    "ndt": -150,
    "jst": 540,
    "kst": 540,
    "hkt": 480,
    "sgt": 480,
    "pht": 480,
    "awst": 480,
    "acst": 570,
    "acdt": 630,
    "aest": 600,
    "aedt": 660,
    "nzst": 720,
    "nzdt": 780,
    "sast": 120,
    "cat": 120,
    "eat": 180,
    "wat": 60,
    "wib": 420,
    "brt": -180,
    "trt": 180,
    "pkt": 300,
    "npt": 345,
}
#: Names with more than one meaning (India, Israel, Ireland; Britain, Bangladesh; the Atlantic, Arabia ...).
AMBIGUOUS_ZONES = frozenset({"ist", "bst", "ast", "adt", "sst", "gst", "amt", "art", "ect", "wst", "et", "ct", "pt"})
