"""Word lists for reading captions and sentences without a language model: English, closed, ordered by use.

They are lists of ours, kept small on purpose: a word that lacks costs a question, a wrong one makes a wrong question.
"""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Product nouns that a detector can look for, by the word the news use.
PRODUCT_PHRASES: dict[str, str] = {
    **dict.fromkeys(("smartphone", "phone", "handset", "foldable", "mobile", "iphone"), "smartphone"),
    **dict.fromkeys(("laptop", "notebook", "ultrabook", "macbook"), "laptop"),
    **dict.fromkeys(("smartwatch", "watch", "wristwatch"), "watch"),
    **dict.fromkeys(("console", "handheld"), "game console"),
    **dict.fromkeys(("car", "sedan", "suv", "hatchback", "saloon", "coupe", "roadster", "crossover", "ev"), "car"),
    **dict.fromkeys(("truck", "pickup", "lorry"), "truck"),
    **dict.fromkeys(("headphones", "headset", "earphones"), "headphones"),
    **dict.fromkeys(("glasses", "sunglasses", "spectacles"), "glasses"),
    **dict.fromkeys(("airplane", "aeroplane", "plane", "jet", "airliner", "aircraft"), "airplane"),
    **dict.fromkeys(("bicycle", "bike", "e-bike"), "bicycle"),
    **dict.fromkeys(("motorcycle", "motorbike"), "motorcycle"),
    **dict.fromkeys(("shoe", "sneaker", "trainer", "shoes", "sneakers"), "shoe"),
    **dict.fromkeys(("television", "tv"), "television"),
    **dict.fromkeys(("cup", "mug"), "cup"),
    **dict.fromkeys(("vacuum",), "robot vacuum"),
    **{
        word: word
        for word in (
            "tablet", "camera", "drone", "speaker", "kettle", "bottle", "lamp", "chair", "robot", "rocket",
            "capsule", "helicopter", "ship", "boat", "yacht", "toy", "doll", "jacket", "backpack", "handbag",
            "guitar", "controller", "keyboard", "monitor", "printer", "fridge", "refrigerator", "oven", "toaster",
            "blender", "tractor", "bus", "van", "tram", "train", "scooter", "satellite", "telescope", "clock",
            "radio", "helmet", "ring", "projector", "router", "earbuds", "microphone", "microscope", "lander",
            "rover", "spacecraft", "submarine", "mower", "racket", "skateboard", "stroller", "tent", "boot", "coat",
            "dress", "sofa", "desk", "piano", "violin",
        )
    },
}  # fmt: skip

#: What may stand before a person's name; the longest fitting run is cut off.
TITLES = _set(
    """
    mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess pope president vice-president
    vice prime minister chancellor senator sen representative rep congressman congresswoman governor gov mayor
    secretary ambassador judge justice attorney general gen colonel col major maj captain capt commander cmdr
    lieutenant lt sergeant sgt admiral adm rear brigadier marshal officer chief executive ceo chairman
    chairwoman chair director founder co-founder coach manager actors actresses singers astronauts players
    ministers presidents leaders striker goalkeeper midfielder defender winger forward quarterback pitcher
    singer rapper actor actress author writer novelist poet painter artist designer architect engineer scientist
    physicist chemist biologist astronomer astronaut cosmonaut pilot former ex retired acting deputy leader
    party spokesman spokeswoman spokesperson analyst economist journalist presenter host comedian composer
    conductor producer filmmaker film-maker champion olympian swimmer sprinter cyclist golfer boxer skier driver
    rider programmer mathematician computer nobel laureate the u.s us uk british american french german spanish
    italian chinese japanese israeli ukrainian russian indian australian canadian european opposition foreign
    finance defence defense interior health education culture labour speaker
    """
)

#: Roles that make a person public; a subset of what stands before names, and nouns used in appositions.
PUBLIC_ROLES = _set(
    """
    president vice-president premier minister chancellor senator representative congressman congresswoman
    governor mayor secretary ambassador judge justice king queen prince princess pope bishop archbishop admiral
    general commander ceo chairman chairwoman founder co-founder director coach manager striker goalkeeper
    midfielder defender quarterback singer rapper musician composer actor actress author novelist poet painter
    artist designer architect scientist physicist chemist biologist astronomer mathematician astronaut cosmonaut
    leader lawmaker politician champion olympian medallist medalist swimmer sprinter cyclist golfer boxer skier
    racer player footballer cricketer wrestler gymnast rower skater sprinter hurdler fencer archer jumper winger
    prosecutor ombudsman rector provost commissioner councillor envoy consul curator harbourmaster
    playwright screenwriter songwriter guitarist drummer cellist organist
    presenter comedian filmmaker film-maker conductor grandmaster soprano
    tenor baritone mezzo sculptor violinist pianist dancer laureate pioneer inventor spokesman spokeswoman
    spokesperson chief
    """
)

#: Lower-case parts inside names.
PARTICLES = _set(
    """
    de da do dos das del della di du van von der den ter ten la le el al bin ibn y e af av zu
    """
)

#: Words before a name that make it a place or an organisation rather than someone in the picture.
PLACE_PREPOSITIONS = _set(
    """
    at in near outside inside of from to for around over above under into across via
    """
)

#: Last or first words of names that are no persons.
NOT_A_PERSON = _set(
    """
    university college school hospital stadium arena park airport station street avenue road square bridge tower
    palace house museum theatre theater centre center hall court church cathedral city county state river lake
    mountain island sea ocean bay beach company corporation inc corp ltd plc group bank party union club united
    fc team league cup championship olympics games festival awards award prize conference summit forum week day
    council commission committee ministry department agency institute laboratory labs foundation association
    society press times news post herald gazette tribune courier daily journal network parliament congress
    senate programme program mission shuttle space force navy army police office market expo show fair line
    lines airlines airways motors electric electronics systems technologies
    """
)

#: Capitalised words that begin a caption without being part of a name.
OPENERS = _set(
    """
    the a an this that these those in on at from left right centre center top bottom above below pictured
    clockwise front back file photo image picture members visitors fans people crowds workers children students
    supporters guests seen with and while as after before during one two three four five six its his her their
    our new monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december here there when where who what which it he she they we you both
    all
    """
)

#: Finite verbs by which a predicate may begin, beside words in -ed and the forms of be, have and the modals.
IRREGULAR_PAST = _set(
    """
    became began beat bet bid bit blew bought broke brought built came caught chose cut did drew drove drank ate
    fell fed felt fought found flew forgot forgave froze gave got grew had heard held hit kept knew laid led
    left lent let lost made meant met paid put quit read rode rose ran said saw sold sent set shook shot showed
    shut sang sank sat slept spoke spent split spread stood stole stuck struck swore swam swept took taught tore
    told thought threw understood woke wore won withdrew wrote oversaw undertook overtook
    went cost sought hung lay swung wound bound fit shrank sprang wept dealt bent burnt dug
    fled learnt rang shone slid spun stank strode strove
    """
)
PRESENT = _set(
    """
    has is does leads holds plays runs works lives says makes weighs costs carries measures uses offers comes
    goes stands folds records charges lasts opens closes plans wants hopes heads chairs teaches writes sings
    stars owns represents serves coaches captains trains studies builds sells ships features includes needs lets
    takes gives shows turns keeps cleans boils flies drives seats supports replaces joins wears remains becomes
    begins starts returns appears performs directs presents edits designs drinks weaves plugs
    """
)
AUXILIARIES = _set(
    """
    is was has had will would can could may might must should does did
    """
)
#: Past participles in -ed that often open an apposition rather than a predicate.
PARTICIPLES = _set(
    """
    based born named called known dressed pictured seated located related aged
    """
)

#: Answers that name nobody.
GENERIC = _set(
    """
    man woman person people boy girl child player official politician leader president minister athlete actor
    singer phone smartphone laptop watch car product device camera robot company organisation organization team
    group he she it they someone somebody nobody none unknown unnamed image picture photo caption
    """
)

#: Words that may stand between a product's name and its noun.
DESCRIBING = _set(
    """
    smart folding electric wireless digital sports delivery action concept game games home robot mobile city school
    pocket portable handheld compact instant mini
    """
)

#: Names that are words as well: in lower case they name nobody ("with grace").
NAMES_THAT_ARE_WORDS = _set(
    """
    grace will mark may hope rose art bill frank jack rich young king brown white black green long short best page stone
    wood hill rice price day west north bush ford cook baker miller fisher hunter walker bishop banks fields lake moon
    star gold silver wolf fox bird june april august joy faith angel hopper law read bell case cash church field foster
    gates glass house love major marsh park rush self sharp small snow summers swift wall winter wise
    """
)

#: Words that tell nothing of what a question asks for.
STOP_WORDS = _set(
    """
    which what who whose whom name person product image picture photo the a an in of to is was are were has had have did
    does do and or for on at by with as from this that it its his her their shown here very also can could will would
    one new said says made make there be been about into
    """
)

#: Titles that end what stands before a name even in the middle of capitals: "Apple CEO Tim Cook".
ROLE_TITLES = _set(
    """
    ceo president chancellor minister senator governor mayor secretary chairman chairwoman director general
    admiral captain commander coach manager leader chief spokesman spokeswoman ambassador premier founder
    striker goalkeeper midfielder defender quarterback forward
    """
)

#: Titles that go with a single name.
SINGLE_NAME_TITLES = _set("pope king queen prince princess")
