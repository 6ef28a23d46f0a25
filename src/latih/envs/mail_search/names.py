"""Names for a made-up company: projects, people and vendors. No name of one list is in another."""


def _words(text: str) -> list[str]:
    return text.split()


FIRST_WORDS = _words("""
Amber Arctic Ashen Autumn Azure Basalt Bitter Bold Brass Bright Bronze Calm Candid Cedar Chalk Civic Clear Clever
Cobalt Copper Coral Crimson Crisp Crystal Dapper Dawn Deep Desert Distant Dusty Early Ebony Elder Electric Emerald
Fabled Faint Fallow Fancy Fern Fierce First Flint Floral Forest Frosty Gentle Giant Gilded Glass Golden Grand Granite
Gray Green Happy Hardy Hazel Hidden High Hollow Honest Humble Indigo Inner Iron Ivory Jade Jolly Keen Kind Late Lemon
Light Little Lively Lone Lucid Lunar Marble Mellow Merry Mild Misty Modern Mossy Narrow Neat Nimble Noble North Oaken
Ocean Olive Opal Open Outer Pale Pearl Plain Polar Proud Quick Quiet Rapid Rare Red Rosy Royal Ruby Rustic Sandy
Scarlet Silent Silver
""")
SECOND_WORDS = _words("""
Acorn Anchor Anvil Arrow Badger Bamboo Banner Barrel Basin Bay Beacon Beaver Bell Birch Bison Bridge Brook Canyon
Canoe Castle Cliff Cloud Comet Compass Condor Cove Crane Creek Crown Delta Dingo Dome Dove Dragon Dune Eagle Echo
Ember Falcon Ferry Fjord Flame Forge Fountain Fox Garden Gate Geyser Glacier Glade Grove Gull Harbor Harp Hawk Heron
Hill Horizon Island Jaguar Jasmine Kettle Kite Lagoon Lantern Lark Leaf Ledge Lily Linden Lion Lotus Lynx Magnet Maple
Meadow Mesa Meteor Mill Mirror Moth Nest Nettle Oasis Orbit Orchard Otter Owl Palace Panther Pebble Pelican Piano
Pillar Pine Planet Plume Pond Poplar Prairie Prism Quarry Quartz Rabbit Raven Reef Ridge River Robin Saddle Sail
Sparrow Spring Summit
""")
GIVEN_NAMES = _words("""
Ada Alan Amir Anna Bela Ben Bo Carla Cem Chen Clara Dan Dora Eli Emma Eva Finn Gita Hana Hugo Ines Ivan Jana Jin Joel
Juan Kai Kira Lara Lea Leo Lin Luis Mara Max Mei Mia Milo Nadia Nico Nina Noor Olga Omar Oscar Paul Petra Priya Rosa
Rui Sam Sara Sven Tara Theo Tom Uma Vera Yara Zoe
""")
FAMILY_NAMES = _words("""
Abel Adler Akin Alvarez Arslan Baker Bauer Becker Berg Blanc Bruno Castro Conti Costa Cruz Demir Diaz Duarte Fischer
Fuchs Gomez Gupta Haas Hansen Ito Jansen Jensen Kaya Keller Khan Kim Klein Kovac Lang Larsen Lopez Mehta Meyer Moreau
Novak Okafor Olsen Ortiz Park Patel Perez Popov Ramos Rao Rossi Sato Schmidt Silva Singh Tanaka Vogel Weber Wolf Yilmaz
Zhang
""")
VENDORS = _words("""
Aldrion Belcora Bexley Brantol Calvexa Cindrel Corvanta Dalmex Dorvane Elsinor Ferrano Galtech Gavrion Halvorn Ixalon
Jorvik Kalbera Kestrix Lanvora Lumetra Mirtex Monvale Nordexa Norvane Oltrina Orvexa Palvion Pertexa Quanlor Quelmar
Ravexa Rondelle Salvora Sentrix Solvane Tarvion Tolmera Trivexa Ulmora Valtrix Velmora Vontera Wexford Xantria Yelvora
Zanvolt Zelmora Zentara
""")
OUTSIDERS = ["helpdesk@mail-desk.example", "admin@it-notice.example", "agent@auto-ops.example", "info@prize.example"]
